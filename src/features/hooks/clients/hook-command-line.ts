// The command that a client starts for each event: how it is written into settings, and how it is recognised there. It
// is recognised only in the exact form, because one more operator of the shell could turn every failure into a success.

import type { Client } from '../hook-event.js';

/** The options of `turnpike hook`, each with a value. */
export const HOOK_OPTIONS = [
  ...['home', 'project', 'case', 'actor', 'person', 'lane', 'role', 'timeout', 'pending'],
] as const;

/** How long `turnpike hook` waits for the decision, in milliseconds. */
export const HOOK_TIMEOUT_MS = 8_000;
/**
 * How long the shell waits for the hook, and the client for the shell, in seconds. Each is longer than the time inside.
 */
const WRAPPER_TIMEOUT_S = 10;
export const CLIENT_TIMEOUT_S = 15;

/** What the configuration of a client says to the hook. */
export interface HookTarget {
  readonly client: Client;
  /** The program and the script, absolute paths. */
  readonly program: readonly string[];
  readonly home: string;
  /** Absent: the folder that the client names, or its working directory. */
  readonly project?: string;
  readonly case: string;
  readonly actor?: string;
  readonly lane?: string;
  readonly role?: string;
}

/** The words of the command. */
export const hookWords = ({ client, program, home, project, actor, lane, role, ...target }: HookTarget): string[] => [
  ...program,
  'hook',
  client,
  ...optionWords({ home, project, case: target.case, actor, lane, role }),
];

/** Options with the values that are given. */
export const optionWords = (values: Readonly<Record<string, string | undefined>>): string[] =>
  Object.entries(values).flatMap(([name, value]) => (value === undefined ? [] : [`--${name}`, value]));

/** The command as a line for the shell. */
export const commandLine = (words: readonly string[]): string => words.map(quoteWord).join(' ');

const FAILURE_TEXT = 'Turnpike: the hook failed, so the call is denied';

/** The same, for clients that stop a call only after code 2 with a message: any failure becomes that. */
export const wrappedLine = (words: readonly string[]): string =>
  `timeout ${WRAPPER_TIMEOUT_S} ${commandLine(words)} || { echo '${FAILURE_TEXT}' >&2; exit 2; }`;

/** Cline stops a call only for a body: any failure becomes one. */
export const clineScript = (words: readonly string[]): string =>
  [
    '#!/bin/sh',
    `answer=$(timeout ${WRAPPER_TIMEOUT_S} ${commandLine(words)}) && printf '%s' "$answer" ||`,
    `  printf '%s' '{"cancel":true,"errorMessage":"${FAILURE_TEXT}"}'`,
    '',
  ].join('\n');

/** A command of settings that is the hook. */
export interface FoundCommand {
  /** The interpreter and the script, as the command names them. */
  readonly program: readonly string[];
  /** The time in seconds after which the shell turns a silent hook into a denial; null without that form. */
  readonly wrapped_s: number | null;
}

/** The hook of a client in the text of a command; null for anything else. */
export function findHookCommand(text: string, client: Client): FoundCommand | null {
  const wrapped = WRAPPED.exec(text);
  const words = shellWords(wrapped?.[2] ?? text);
  if (words === null || !isHook(words, client)) return null;
  const program = words.slice(0, words.indexOf('hook'));
  return { program, wrapped_s: wrapped === null ? null : Number(wrapped[1]) };
}

/** Whether a text of settings mentions the hook, in whatever form. */
export const mentionsHook = (text: string, client: Client): boolean =>
  text.includes(` hook ${client}`) || text.includes(`' hook ${client}`);

/** The script that `clineScript` writes, with the command in it. */
export const CLINE_SCRIPT =
  /^#!\/bin\/sh\nanswer=\$\(timeout \d{1,3} ([^\n]{1,8000})\) && printf '%s' "\$answer" \|\|\n {2}printf '%s' '\{"cancel":true,"errorMessage":"[^'"\\\n]{1,200}"\}'\n$/;

const WRAPPED = /^timeout (\d{1,3}) (\S.{0,8000}?) \|\| \{ echo (?:'[^']{1,200}'|[\w :,.-]{1,200}) >&2; exit 2; \}$/;

function isHook(words: readonly string[], client: Client): boolean {
  const at = words.indexOf('hook');
  const program = words.slice(0, at).map((word) => word.slice(word.lastIndexOf('/') + 1));
  const isProgram =
    (program.length === 1 && program[0] === 'turnpike') ||
    (program.length === 2 && program[0] === 'node' && SCRIPT.test(program[1] ?? ''));
  const options = words.slice(at + 2);
  const isPairs =
    options.length % 2 === 0 &&
    options.every((word, i) => i % 2 === 1 || HOOK_OPTIONS.some((name) => word === `--${name}`));
  return at >= 1 && isProgram && words[at + 1] === client && isPairs;
}

/** The hook program where an installation writes it: its name has its SHA-256. */
export const HOOK_PROGRAM = /^\/.*\/turnpike-hook-[0-9a-f]{64}\.mjs$/;
const SCRIPT = /^(?:main\.js|turnpike|turnpike-hook-[0-9a-f]{64}\.mjs)$/;
const PLAIN = /^[\w@%+=:,./-]+$/;
/** A word as the shell reads it. */
export const quoteWord = (word: string): string =>
  PLAIN.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;

/**
 * A part of a line without operators, expansions and assignments: quoted text, an escaped quote, plain text, spaces.
 */
const PIECE = /'([^']*)'|"([^"$`\\!]*)"|\\(')|([\w@%+=:,./-]+)|( +)/gy;

/** The words of a line of such parts; null for any other line. */
function shellWords(line: string): readonly string[] | null {
  const words: string[] = [];
  let word: string | null = null;
  let read = 0;
  for (const [piece, ...texts] of line.matchAll(PIECE)) {
    const isSpace = texts.pop() !== undefined;
    if (isSpace && word !== null) words.push(word);
    word = isSpace ? null : (word ?? '') + texts.join('');
    read += piece.length;
  }
  if (read < line.length) return null;
  if (word !== null) words.push(word);
  return /^\w+=/.test(words[0] ?? '') ? null : words;
}
