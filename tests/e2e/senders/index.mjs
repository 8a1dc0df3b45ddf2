// SPDX-License-Identifier: MIT
// The providers' packages under one roof, so that the tests beside this
// folder need not care how each is packaged.

import { createRequire } from 'node:module';
import Stripe from 'stripe';

export { Webhook as StandardWebhook } from 'standardwebhooks';
export { Webhook as SvixWebhook } from 'svix';
export { sign as signGithub } from '@octokit/webhooks-methods';

export const stripe = Stripe.webhooks ?? new Stripe('sk_test_x').webhooks;

// [{ name, examples: [payload] }], 58 types of events.
const examples = createRequire(import.meta.url)('@octokit/webhooks-examples');
export const githubExamples = examples.default ?? examples;
