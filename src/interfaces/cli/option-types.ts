// What the options of commands take. The type of an option checks its text, and decides the type of the value that the
// command gets.

import { resolve } from 'node:path';

/** How the text of an option becomes a value. */
export interface OptionType<Value> {
  /** What the option takes, for the error message: `a number up to 65535`. */
  readonly takes: string;
  /** Whether the error message also quotes the text that was given. */
  readonly quotes?: boolean;
  /**
   * @param cwd the working directory of the command
   * @returns undefined for a text that the option does not take
   */
  readonly parse: (text: string, cwd: string) => Value | undefined;
}

interface IntegerRange {
  readonly min?: number;
  readonly max?: number;
  /** The words of the error message for this range. */
  readonly takes: string;
  readonly quotes?: boolean;
}

/** A whole number in decimal digits, no more of them than the maximum has. */
export const integerType = ({
  min = 0,
  max = 999_999_999,
  takes,
  quotes = false,
}: IntegerRange): OptionType<number> => ({
  takes,
  quotes,
  parse: (text) => {
    const isNumber = /^\d+$/u.test(text) && text.length <= String(max).length;
    // With leading zeros, a number that has a minimum is probably something else.
    if (!isNumber || (min > 0 && text.startsWith('0'))) return undefined;
    return Number(text) >= min && Number(text) <= max ? Number(text) : undefined;
  },
});

export const PORT_TYPE: OptionType<number> = integerType({ max: 65_535, takes: 'a number up to 65535' });

/** One of several words. */
export const wordType = <const Word extends string>(words: readonly Word[], separator = ', '): OptionType<Word> => ({
  takes: words.join(separator),
  quotes: true,
  parse: (text) => words.find((word) => word === text),
});

/** A file or a folder, relative to the working directory of the command. The value is absolute. */
export const PATH_TYPE: OptionType<string> = { takes: 'a path', parse: (text, cwd) => resolve(cwd, text) };
