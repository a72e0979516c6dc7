// The format of a file: a number from 1. It follows a fixed text at the beginning of the file or of its member
// `format`, or is the member `version` of a JSON file.
//
//   F1. A file of a later format is not supported. It is not damaged, although nothing else of it can be read.
//   F2. Neither is a file from before formats began again at 1 (decision 0090): its number says nothing.

import { laterFormatError, oldFormatError } from '../errors.js';
import { isJsonObject } from './json.js';

export interface FileFormat {
  /** What precedes the number. */
  readonly prefix: string;
  /** The number of the format that this version reads and writes. */
  readonly newest: number;
  /** How files began before formats began again at 1, if they began in another way. No file of today begins so. */
  readonly old?: RegExp;
}

const NUMBER = /^([1-9]\d{0,8})(?!\d)/;

/** What a file of this format begins with. */
export const formatHeader = ({ prefix, newest }: FileFormat): string => `${prefix}${newest}`;

/**
 * Refuses the beginning of a file of another format. Accepts every other text: whether it is one of a file of ours at
 * all has to be checked afterwards.
 * @param what the file, for the message
 * @throws LedgerError LEDGER_UNSUPPORTED
 */
export function refuseOtherFormat(text: string, { prefix, newest, old }: FileFormat, what: string): void {
  if (old?.test(text) === true) throw oldFormatError(what);
  if (!text.startsWith(prefix)) return;
  const [, number] = NUMBER.exec(text.slice(prefix.length, prefix.length + 10)) ?? [];
  if (Number(number) > newest) throw laterFormatError(what, Number(number), newest);
}

/**
 * Refuses a JSON file whose member `version` is later. Accepts everything else, as `refuseOtherFormat` does.
 * @throws LedgerError LEDGER_UNSUPPORTED
 */
export function refuseLaterVersion(value: unknown, newest: number, what: string): void {
  const version = isJsonObject(value) ? value['version'] : undefined;
  if (typeof version === 'number' && Number.isSafeInteger(version) && version > newest)
    throw laterFormatError(what, version, newest);
}
