/**
 * Parses JSON that this program has written: an entry or a response of the ledger, whose hash is compared elsewhere, or
 * a message of its own. For text that something else has written, use `readJson`: JSON.parse takes the last of two
 * equal members. `test/borders.test.ts` says where neither is a choice.
 * @throws SyntaxError
 */
export const parseOwnJson = (text: string): unknown => JSON.parse(text);
