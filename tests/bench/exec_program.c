/* SPDX-License-Identifier: MIT */
/* The cheapest program there is: linked statically, it ends at once. */
int main(void)
{
    return 0;
}
