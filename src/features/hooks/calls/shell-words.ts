// Reads a shell command into its simple commands, each as its words. It reads only what every POSIX shell reads alike
// and what does not depend on variables, files or aliases: anything else has no reading, so policy denies it.

/** Longer commands have no reading. */
const COMMAND_CHARS_MAX = 8_192;
const COMMANDS_MAX = 64;
const WORDS_MAX = 512;

/** Outside of quotes, these mean more than themselves. */
const SPECIAL = /[$`\\!*?[\]{}()<>#~^%\p{Cc}]/u;
/** Inside single quotes, everything but a control character means itself. */
const CONTROL = /\p{Cc}/u;
/** `NAME=value` before a command changes its environment. */
const ASSIGNMENT = /^[A-Za-z_][A-Za-z0-9_]*\+?=/;
/** Redirections that write no file, up to a character that ends the word for every shell. */
const HARMLESS = /(?:2>&1|[12]?>[ \t]*\/dev\/null)(?=[ \t\n;&|]|$)/y;
/** Spaces that no shell takes as one, and what a person does not see. */
const CONFUSING = /(?! )[\p{Z}\p{Cf}]/u;
/** Characters that show a text in another order than it has. */
const REORDERING = /\p{Bidi_Control}/u;
/** First words that begin a construct of the shell. */
const RESERVED =
  /^(?:if|then|elif|else|fi|for|foreach|in|do|done|while|until|repeat|case|esac|select|function|time|coproc|end|nocorrect|noglob|\[\[|\]\])$/;
/** What follows a `$` that no shell expands inside double quotes. */
const AFTER_PLAIN_DOLLAR = /^[ |)"]$/;

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
 * @returns null if it has no safe reading: expansions, globs, redirections to files, subshells, assignments
 */
export function shellCommands(text: string): readonly (readonly string[])[] | null {
  if (text.length > COMMAND_CHARS_MAX || !text.isWellFormed()) return null;
  if (REORDERING.test(text)) return null;
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
    const length = redirectionAt(text, at);
    if (length > 0) return reading.words.length > 0 ? at + length : null;
  }
  if (character === '\n' || character === ';' || character === '&' || character === '|')
    return readOperator(text, at, reading);
  if (character === '\\') return readEscape(text, at, reading);
  if (character === '#' && reading.word === null) return endOfLine(text, at);
  // zsh reads `=program` as the path of the program.
  if (character === '=' && reading.word === null) return null;
  if (CONFUSING.test(String.fromCodePoint(text.codePointAt(at) ?? 0))) return null;
  if (SPECIAL.test(character)) return readLiteral(text, at, reading);
  reading.word = (reading.word ?? '') + character;
  return at + 1;
}

/** The length of a redirection that writes no file; 0 if none begins here. */
function redirectionAt(text: string, at: number): number {
  HARMLESS.lastIndex = at;
  return HARMLESS.exec(text)?.[0].length ?? 0;
}

/** A backslash outside of quotes: the next character means itself, and a line goes on. */
function readEscape(text: string, at: number, reading: Reading): number | null {
  const next = text.charAt(at + 1);
  if (next === '\n') return at + 2;
  if (next === '' || !/^[!-~ ]$/.test(next)) return null;
  reading.word = (reading.word ?? '') + next;
  return at + 2;
}

const endOfLine = (text: string, at: number): number => {
  const end = text.indexOf('\n', at);
  return end < 0 ? text.length : end;
};

/** Characters that are special only in some places. */
function readLiteral(text: string, at: number, reading: Reading): number | null {
  const character = text.charAt(at);
  const isInside = reading.word !== null && reading.word !== '';
  // `HEAD~1`, `a^`, `50%`, `issue#3`: special only at the beginning of a word.
  const isPlain = isInside && (character === '~' || character === '#' || character === '^' || character === '%');
  // `~/file` and `~`: the home of the user, which policy sees as it is written.
  const isHome = !isInside && character === '~' && reading.word === null && HOME.test(text.slice(at, at + 2));
  if (!isPlain && !isHome) return null;
  // `a=~b` and `a:~b` can be the home of another user.
  if (isPlain && character === '~' && /[=:]$/.test(reading.word ?? '')) return null;
  reading.word = (reading.word ?? '') + character;
  return at + 1;
}

const HOME = /^~(?:[/ \t\n;&|]|$)/;

function readQuoted(text: string, at: number, reading: Reading): number | null {
  const quote = text.charAt(at);
  if (quote === '"') return readDoubleQuoted(text, at, reading);
  const end = text.indexOf(quote, at + 1);
  if (end < 0) return null;
  const inside = text.slice(at + 1, end);
  if (CONTROL.test(inside.replace(/[\n\t]/g, ''))) return null;
  reading.word = (reading.word ?? '') + inside;
  return end + 1;
}

/** Text in double quotes. `!` means itself in a shell that runs a command, and so does a `$` before no name. */
function readDoubleQuoted(text: string, start: number, reading: Reading): number | null {
  let inside = '';
  for (let at = start + 1; at < text.length; at += 1) {
    const character = text.charAt(at);
    if (character === '"') {
      reading.word = (reading.word ?? '') + inside;
      return at + 1;
    }
    if (character === '\\') {
      const next = text.charAt(at + 1);
      if (next === '' || (CONTROL.test(next) && next !== '\n')) return null;
      // A backslash means itself before every other character.
      inside += next === '\n' ? '' : /[$`"\\]/.test(next) ? next : `\\${next}`;
      at += 1;
    } else if (character === '$') {
      if (!AFTER_PLAIN_DOLLAR.test(text.charAt(at + 1))) return null;
      inside += character;
    } else if (character === '`' || (CONTROL.test(character) && character !== '\n' && character !== '\t')) {
      return null;
    } else {
      inside += character;
    }
  }
  return null;
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
  if (reading.words.length === 0 && RESERVED.test(reading.word)) return false;
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
