/* SPDX-License-Identifier: MIT */
#include "source/scheme.h"

#include <string.h>

#include "base/check.h"
#include "base/json.h"
#include "source/field.h"

struct choice {
    const char *text;
    int value;
};

static const struct choice algorithms[] = {
    {"sha256", VERIFY_HMAC_SHA256}, {"sha1", VERIFY_HMAC_SHA1},
    {"sha384", VERIFY_HMAC_SHA384}, {"sha512", VERIFY_HMAC_SHA512},
    {"md5", VERIFY_HMAC_MD5},       {"ed25519", VERIFY_ED25519},
};

static const struct choice encodings[] = {
    {"hex", VERIFY_HEX},
    {"base64", VERIFY_BASE64},
};

static const struct choice key_encodings[] = {
    {"utf8", VERIFY_KEY_UTF8},
    {"hex", VERIFY_KEY_HEX},
    {"base64", VERIFY_KEY_BASE64},
};

static const struct choice units[] = {
    {"s", VERIFY_SECONDS},
    {"ms", VERIFY_MILLISECONDS},
};

/* Those with a ':' take an argument. */
static const struct choice pieces[] = {
    {"text:", VERIFY_PIECE_TEXT},     {"body", VERIFY_PIECE_BODY},
    {"header:", VERIFY_PIECE_HEADER}, {"timestamp", VERIFY_PIECE_TIMESTAMP},
    {"query:", VERIFY_PIECE_QUERY},   {"json:", VERIFY_PIECE_JSON},
    {"url", VERIFY_PIECE_URL},        {"form-sorted", VERIFY_PIECE_FORM_SORTED},
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The value of `text` among `choices`; the first one's when it is NULL. -1
 * where it is none of them. */
static int choose(const struct choice *choices, size_t n, const char *text)
{
    CHECK(n > 0);
    for (size_t i = 0; i < n; i++) {
        if (text == NULL || strcmp(choices[i].text, text) == 0) {
            return choices[i].value;
        }
    }
    return -1;
}

static bool choose_all(struct scheme *out, const struct verify_options *options,
                       struct err *err)
{
    int algorithm = choose(algorithms, COUNT(algorithms), options->algorithm);
    int encoding = choose(encodings, COUNT(encodings), options->encoding);
    int key =
        choose(key_encodings, COUNT(key_encodings), options->key_encoding);
    int unit = choose(units, COUNT(units), options->timestamp_unit);

    if (algorithm < 0) {
        return err_set(err, ERR_CONFIG,
                       "algorithm: must be sha256, sha1, sha384, sha512, md5 "
                       "or ed25519");
    }
    if (encoding < 0) {
        return err_set(err, ERR_CONFIG, "encoding: must be hex or base64");
    }
    if (key < 0) {
        return err_set(err, ERR_CONFIG,
                       "key_encoding: must be utf8, hex or base64");
    }
    if (unit < 0) {
        return err_set(err, ERR_CONFIG, "timestamp/unit: must be s or ms");
    }
    out->algorithm = (enum verify_algorithm)algorithm;
    out->encoding = (enum verify_encoding)encoding;
    out->key_encoding = (enum verify_key_encoding)key;
    out->time_unit = (enum verify_time_unit)unit;
    return true;
}

static const struct choice *find_piece(const char *text)
{
    for (size_t i = 0; i < COUNT(pieces); i++) {
        size_t len = strlen(pieces[i].text);
        bool takes_argument = pieces[i].text[len - 1] == ':';

        if (takes_argument ? strncmp(text, pieces[i].text, len) == 0
                           : strcmp(text, pieces[i].text) == 0) {
            return &pieces[i];
        }
    }
    return NULL;
}

static const char *argument_problem(enum verify_piece_kind kind,
                                    const char *argument)
{
    if (argument[0] == '\0') {
        return "nothing stands behind the ':'";
    }
    if (kind == VERIFY_PIECE_HEADER && !field_name_ok(slice_of(argument))) {
        return "is not the name of a header";
    }
    if (kind == VERIFY_PIECE_JSON && !json_pointer_ok(slice_of(argument))) {
        return "is not a JSON pointer like /data/id";
    }
    return NULL;
}

static bool parse_piece(struct scheme_piece *out, const char *text,
                        struct err *err)
{
    const struct choice *found = find_piece(text);
    size_t len = found == NULL ? 0 : strlen(found->text);
    const char *problem;

    if (found == NULL) {
        return err_set(err, ERR_CONFIG,
                       "signed: \"%.100s\" must be body, timestamp, text:…, "
                       "header:Name, query:name, json:/pointer, url or "
                       "form-sorted",
                       text);
    }
    out->kind = (enum verify_piece_kind)found->value;
    if (found->text[len - 1] != ':') {
        return true;
    }
    out->argument = text + len;
    problem = argument_problem(out->kind, out->argument);
    if (problem != NULL) {
        return err_set(err, ERR_CONFIG, "signed: \"%.100s\" %s", text, problem);
    }
    return true;
}

/* A sender puts the id there; what else could be signed of the headers? */
static const char *first_header(const struct scheme *scheme)
{
    for (size_t i = 0; i < scheme->n_pieces; i++) {
        if (scheme->pieces[i].kind == VERIFY_PIECE_HEADER) {
            return scheme->pieces[i].argument;
        }
    }
    return NULL;
}

static bool parse_pieces(struct scheme *out,
                         const struct verify_options *options, struct err *err)
{
    if (options->n_signed == 0) {
        out->pieces[0].kind = VERIFY_PIECE_BODY;
        out->n_pieces = 1;
        return true;
    }
    if (options->n_signed > VERIFY_PIECES_MAX) {
        return err_set(err, ERR_CONFIG, "signed: has more than %d parts",
                       VERIFY_PIECES_MAX);
    }
    for (size_t i = 0; i < options->n_signed; i++) {
        if (!parse_piece(&out->pieces[i], options->signed_pieces[i], err)) {
            return false;
        }
    }
    out->n_pieces = options->n_signed;
    out->id_header = first_header(out);
    return true;
}

static bool has_piece(const struct scheme *scheme, enum verify_piece_kind kind)
{
    for (size_t i = 0; i < scheme->n_pieces; i++) {
        if (scheme->pieces[i].kind == kind) {
            return true;
        }
    }
    return false;
}

/* What would look like protection and be none is refused. */
static bool check_coverage(const struct scheme *scheme, struct err *err)
{
    bool timed = scheme->time_header != NULL;

    if (!has_piece(scheme, VERIFY_PIECE_BODY) &&
        !has_piece(scheme, VERIFY_PIECE_JSON) &&
        !has_piece(scheme, VERIFY_PIECE_FORM_SORTED)) {
        return err_set(err, ERR_CONFIG,
                       "signed: nothing of the body is signed, so anybody "
                       "could change it; add \"body\"");
    }
    if (timed && !has_piece(scheme, VERIFY_PIECE_TIMESTAMP)) {
        return err_set(err, ERR_CONFIG,
                       "signed: the timestamp is not signed, so anybody could "
                       "change it; add \"timestamp\" or leave out the option");
    }
    if (!timed && has_piece(scheme, VERIFY_PIECE_TIMESTAMP)) {
        return err_set(err, ERR_CONFIG,
                       "timestamp: is missing, and \"signed\" has it");
    }
    return true;
}

bool scheme_from_options(struct scheme *out,
                         const struct verify_options *options, struct err *err)
{
    *out = (struct scheme){.name = "hmac",
                           .header = options->header,
                           .prefix = options->prefix,
                           .time_header = options->timestamp_header};
    if (options->header == NULL || !field_name_ok(slice_of(options->header))) {
        return err_set(err, ERR_CONFIG,
                       "header: must be the name of the header that has the "
                       "signature");
    }
    if (options->timestamp_header != NULL &&
        !field_name_ok(slice_of(options->timestamp_header))) {
        return err_set(err, ERR_CONFIG,
                       "timestamp/header: is not the name of a header");
    }
    if (options->timestamp_header == NULL && options->timestamp_unit != NULL) {
        return err_set(err, ERR_CONFIG, "timestamp/header: is missing");
    }
    return choose_all(out, options, err) && parse_pieces(out, options, err) &&
           check_coverage(out, err);
}
