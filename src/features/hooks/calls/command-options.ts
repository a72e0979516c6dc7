// The options of a command, as a call rule lists them. What no list has is refused, so that no abbreviation, no other
// way to write an option and no option of a later version of a program passes.

/**
 * Whether each option among the words behind the prefix is in the list. A word counts as an option if it begins with
 * `-`, `+` or `@`, also behind `--`: not every program ends its options there, and some read further ones from `@file`.
 * @param lists texts with spaces between options; absent: all options
 */
export const hasOnlyOptions = (words: readonly string[], prefix: string, lists?: readonly string[]): boolean =>
  otherOptions(words, prefix, lists).length === 0;

/** The options that the list does not have. */
export function otherOptions(words: readonly string[], prefix: string, lists?: readonly string[]): readonly string[] {
  if (lists === undefined) return [];
  const options = lists.flatMap((list) => list.split(' '));
  const takesClusters = !options.some((option) => LONG_WITH_ONE_HYPHEN.test(option));
  return words
    .slice(prefix.split(' ').length)
    .filter((word) => /^(?:[+@]|-.)/s.test(word))
    .filter(
      (word) =>
        !options.some((option) => isOption(word, option, takesClusters)) &&
        !(takesClusters && /^-[^-]/.test(word) && isCluster(word, options)),
    );
}

/** A program with such options takes no letters together: `-exec` is one option of it. */
const LONG_WITH_ONE_HYPHEN = /^-[^-=][^=]/;

/** Whether the word is this option. One that ends with `=` takes a value: `--color=`, `-n=`, `-run=`. */
function isOption(word: string, option: string, takesClusters: boolean): boolean {
  if (option === '-#') return /^-[0-9]+$/.test(word);
  if (!option.endsWith('=')) return word === option;
  const name = option.slice(0, -1);
  // Of a program without letters together, `-pkgdir` is no `-p` with a value.
  const isLong = name.startsWith('--') || (name.startsWith('-') && !takesClusters);
  return word === name || word.startsWith(isLong ? option : name);
}

/** Whether the word is letters of the list, of which the last may have its value behind it: `-la`, `-rn5`, `-n20`. */
function isCluster(word: string, options: readonly string[]): boolean {
  for (let at = 1; at < word.length; at += 1) {
    const letter = `-${word.charAt(at)}`;
    if (options.includes(`${letter}=`)) return true;
    if (options.includes('-#') && /^[0-9]+$/.test(word.slice(at))) return true;
    if (!options.includes(letter)) return false;
  }
  return true;
}
