// Reads a shell command into its simple commands, each as its words. It reads only what every POSIX shell reads alike
// and what does not depend on variables, files or aliases: anything else has no reading, so policy denies it.

/** Longer commands have no reading. */
const COMMAND_CHARS_MAX = 8_192;
const COMMANDS_MAX = 64;
const WORDS_MAX = 512;

/** Outside of quotes, these mean more than themselves. */
const SPECIAL = /[$`\\!*?[\]{}()<>#~^%\p{Cc}]/u;
/** Inside double quotes. */
const SPECIAL_IN_QUOTES = /[$`\\!\p{Cc}]/u;
/** Inside single quotes, everything but a control character means itself. */
const CONTROL = /\p{Cc}/u;
/** `NAME=value` before a command changes its environment. */
const ASSIGNMENT = /^[A-Za-z_][A-Za-z0-9_]*\+?=/;
/** Redirections that write no file. */
const HARMLESS = /^(?:2>&1|[12]?>[ \t]*\/dev\/null)(?=[\s;&|]|$)/;

interface Reading {
  readonly commands: string[][];
  words: string[];
  /** The word in progress; null between words. */
  word: string | null;
  /** Whether the last thing read was an operator that needs a command behind it. */
  open: boolean;
}

/**
 * The simple commands of a shell command, in order: `git add . && git commit` has two.
 * @returns null if it has no safe reading: expansions, globs, redirections to files, subshells, assignments, escapes
 */
export function shellCommands(text: string): readonly (readonly string[])[] | null {
  if (text.length > COMMAND_CHARS_MAX || !text.isWellFormed()) return null;
  const reading: Reading = { commands: [], words: [], word: null, open: false };
  let at = 0;
  while (at < text.length) {
    const next = readOne(text, at, reading);
    if (next === null) return null;
    at = next;
  }
  if (!endCommand(reading)) return null;
  return reading.open || reading.commands.length === 0 ? null : reading.commands;
}

/** Reads one character, quoted text or operator. @returns where the next one begins, or null */
function readOne(text: string, at: number, reading: Reading): number | null {
  const character = text.charAt(at);
  if (character === "'" || character === '"') return readQuoted(text, at, reading);
  if (character === ' ' || character === '\t') return endWord(reading) ? at + 1 : null;
  if (reading.word === null) {
    const redirection = HARMLESS.exec(text.slice(at, at + 64));
    if (redirection !== null) return reading.words.length > 0 ? at + redirection[0].length : null;
  }
  if (character === '\n' || character === ';' || character === '&' || character === '|')
    return readOperator(text, at, reading);
  if (SPECIAL.test(character)) return readLiteral(text, at, reading);
  reading.word = (reading.word ?? '') + character;
  return at + 1;
}

/** Characters that are special only in some places. */
function readLiteral(text: string, at: number, reading: Reading): number | null {
  const character = text.charAt(at);
  const isInside = reading.word !== null && reading.word !== '';
  // `HEAD~1`, `a^`, `50%`, `issue#3`: special only at the beginning of a word.
  const isPlain = isInside && (character === '~' || character === '#' || character === '^' || character === '%');
  // `~/file` and `~`: the home of the user, which policy sees as it is written.
  const isHome =
    !isInside && character === '~' && reading.word === null && /^~(?:[/\s;&|]|$)/.test(text.slice(at, at + 2));
  if (!isPlain && !isHome) return null;
  reading.word = (reading.word ?? '') + character;
  return at + 1;
}

function readQuoted(text: string, at: number, reading: Reading): number | null {
  const quote = text.charAt(at);
  const end = text.indexOf(quote, at + 1);
  if (end < 0) return null;
  const inside = text.slice(at + 1, end);
  const unreadable = quote === '"' ? SPECIAL_IN_QUOTES : CONTROL;
  if (unreadable.test(inside.replace(/[\n\t]/g, ''))) return null;
  reading.word = (reading.word ?? '') + inside;
  return end + 1;
}

function readOperator(text: string, at: number, reading: Reading): number | null {
  const operator = /^(?:&&|\|\||[;&|\n])/.exec(text.slice(at, at + 2))?.[0] ?? '';
  const isBlank = reading.words.length === 0 && reading.word === null;
  if (isBlank && operator === '\n') return at + 1;
  if (isBlank || !endCommand(reading)) return null;
  reading.open = operator === '&&' || operator === '||' || operator === '|';
  return at + operator.length;
}

function endWord(reading: Reading): boolean {
  if (reading.word === null) return true;
  if (reading.words.length === 0 && ASSIGNMENT.test(reading.word)) return false;
  reading.words.push(reading.word);
  reading.word = null;
  return reading.words.length <= WORDS_MAX;
}

function endCommand(reading: Reading): boolean {
  if (!endWord(reading)) return false;
  if (reading.words.length === 0) return true;
  reading.commands.push(reading.words);
  reading.words = [];
  reading.open = false;
  return reading.commands.length <= COMMANDS_MAX;
}
