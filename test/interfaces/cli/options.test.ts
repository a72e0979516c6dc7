// What the options of all commands take. The command line is checked before a command opens anything, so that these
// calls need no home directory.

import { describe, expect, test } from '@jest/globals';
import { readdirSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseArguments } from '../../../src/interfaces/cli/arguments.js';
import { integerType, PATH_TYPE, wordType } from '../../../src/interfaces/cli/option-types.js';
import { NOTE_TYPE } from '../../../src/features/sessions/commands/session-options.js';
import { COMMANDS } from '../../../src/interfaces/cli/turnpike-command.js';
import { put, tempFolder, turnpike } from './fake-io.js';

const DIGEST = '0'.repeat(64);
const PERSON = ['--actor', 'alice', '--role', 'APPROVER'];
const STARTER = ['--case', 'case-1', ...PERSON];
const PROMOTE = ['promote', ...STARTER, '--ticket', 'T-1', '--target', 'notes', '--record', '{}'];
const OIDC = ['--oidc-issuer', 'https://a.example', '--oidc-audience', 'turnpike'];

/** Command lines, and what their error message says before it names the help of the command. */
const REFUSED: readonly (readonly [argv: readonly string[], message: string])[] = [
  [['serve', '--port', '65536'], '--port takes a number up to 65535'],
  [['serve', '--port', '-1'], "Option '--port' argument is ambiguous"],
  [['serve', '--xstate-inspect', 'http'], '--xstate-inspect takes a number up to 65535'],
  [['serve', '--wait', '86401'], '--wait takes 0 to 86400 seconds'],
  [['worker', '--wait', '1.5'], '--wait takes 0 to 86400 seconds'],
  [['serve', '--new-runs-max', '1e3'], '--new-runs-max takes a whole number'],
  [['mcp', '--new-runs-max', '1234567890'], '--new-runs-max takes a whole number'],
  [['serve', '--on-ledger-failure', 'wait'], '--on-ledger-failure takes restart or exit, not "wait"'],
  [['mcp', '--on-ledger-failure', ''], '--on-ledger-failure takes restart or exit, not ""'],
  [['inspect', '--port', '123456'], '--port takes a number up to 65535'],
  [['inspect', 'bundle', '--html-mib', '1025'], '--html-mib takes a number from 1 to 1024'],
  [['inspect', 'bundle', '--html-mib', '0'], '--html-mib takes a number from 1 to 1024'],
  [['run', '-', '--exposure', 'all'], '--exposure takes explained or detailed or decision, not "all"'],
  [['runs', '--limit', '0'], '--limit takes a number of at least 1'],
  [['runs', '--limit', '01'], '--limit takes a number of at least 1'],
  [['runs', '--since', 'yesterday'], '--since takes a UTC time or 30m, 2h, 7d, not "yesterday"'],
  [['runs', '--since', '2026-13-01'], '--since takes a UTC time or 30m, 2h, 7d, not "2026-13-01"'],
  [
    ['runs', '--status', 'failed', '--status', 'done'],
    '--status takes created, running, completed, failed, denied, cancelled, not "done"',
  ],
  [['runs', 'run_x', '--follow'], '--follow takes no RUN_ID'],
  [['runs', 'report', 'run_x'], '--outcome takes done, failed, unknown, not ""'],
  [['runs', 'report', 'run_x', '--outcome', 'perhaps'], '--outcome takes done, failed, unknown, not "perhaps"'],
  [['runs', 'resolve', 'run_x', ...PERSON], '--outcome takes done or not-executed, not ""'],
  [
    ['runs', 'resolve', 'run_x', ...PERSON, '--outcome', 'not_executed'],
    '--outcome takes done or not-executed, not "not_executed"',
  ],
  [
    ['runs', 'resolve', 'run_x', ...PERSON, '--outcome', 'done', '--note', 'x'.repeat(401)],
    '--note has more than 400 characters',
  ],
  [['approve', 'run_x', DIGEST, ...PERSON, '--wait', '86401'], '--wait takes a number of seconds up to 86400'],
  [['approve', 'run_x', 'all', ...PERSON], '"all" is not a digest'],
  [['approvals', 'run_x'], 'give both RUN_ID and DIGEST, not only "run_x"'],
  [['approvals', 'run_x', DIGEST], '--actor is missing'],
  [['approvals', 'run_x', DIGEST, '--actor', 'alice'], '--role is missing'],
  [[...PROMOTE, '--mode', 'replace'], '--mode takes append or upsert, not "replace"'],
  [[...PROMOTE, '--source', 'ABC'], '--source takes a SHA-256 in lower-case hex, not "ABC"'],
  [[...PROMOTE, '--record-file', '-'], 'give either --record or --record-file'],
  [PROMOTE.slice(0, -2), 'give either --record or --record-file'],
  [[...PROMOTE, '--scope', 'x'], '--scope takes key=value, not "x"'],
  [[...PROMOTE, '--scope', 'x=1', '--scope', 'x=2'], '--scope gives "x" twice'],
  [
    ['export', ...STARTER, '--reason', 'r', '--to', 'bag', '--kind', 'all'],
    '--kind takes internal_review, discovery_production, ',
  ],
  [['token', ...PERSON, '--right', 'observe', '--right', 'all'], '--right takes observe, act, '],
  [['token', ...PERSON, '--right', 'observe', '--expires', '0'], '--expires takes a number of days up to 3650'],
  [['token', ...PERSON, '--right', 'observe', '--expires', '3651'], '--expires takes a number of days up to 3650'],
  [['ledger', 'archive', 'file', '--before', 'x'], '--before takes a number of entries, not "x"'],
  [['ledger', 'erase', 'case-1', '--actor', 'alice'], 'this destroys content permanently: confirm with --yes'],
  [['ledger', 'verify', 'file', '--archive', 'a'], '--archive cannot be combined with FILE'],
  [['ledger', 'verify', 'file', '--store', 'postgres://x'], '--store cannot be combined with FILE'],
  [['ledger', 'prove'], 'give either ENTRY or --from'],
  [['ledger', 'prove', '@1', '--from', 'file'], 'give either ENTRY or --from'],
  [['replay', '--all'], '--all needs --until'],
  [['replay', '--store-points'], '--store-points needs --until'],
  [['replay', 'run_x', '--until', 'last'], '--until last cannot be combined with RUN_ID'],
  [['keys', 'rotate', ...PERSON], 'name the keys to replace: --signing, --case ID or --cases'],
  [['keys', 'rotate', '--cases', '--signing', ...PERSON], 'name the keys to replace: --signing, --case ID or --cases'],
  [
    ['keys', 'rotate', '--cases', '--case', 'case-1', ...PERSON],
    'name the keys to replace: --signing, --case ID or --cases',
  ],
  [
    ['policy', 'simulate', '--fail-on', 'new-deny,newallow'],
    '--fail-on takes new-allow, new-deny, stricter, less-strict, other-rule or any',
  ],
  [['mcp', 'localhost:7390'], 'HOST:PORT needs --http'],
  ...['localhost', '127.0.0.1:65536', 'http://127.0.0.1:0'].map(
    (address) => [['mcp', '--http', address], `"${address}" is not a valid HOST:PORT`] as const,
  ),
  ...['0.0.0.0', 'evil.example'].map(
    (host) =>
      [['mcp', '--http', `${host}:0`], `other machines can reach "${host}": add --remote to allow that`] as const,
  ),
  ...['9090', 'localhost:70000'].map(
    (address) => [['worker', '--admin', address], `"${address}" is not a valid HOST:PORT`] as const,
  ),
  [['serve', '--log-level', 'debug'], '--log-level takes error, warn, info'],
  [['serve', '--tls-cert', 'cert.pem'], '--tls-cert needs --tls-key'],
  [['mcp', '--http', '--tls-key', 'key.pem'], '--tls-key needs --tls-cert'],
  [
    ['init', '--template', 'constructor'],
    '--template takes documents, coding, support, records, reference, not "constructor"',
  ],
  [['serve', ...OIDC.slice(0, 2)], '--oidc-issuer needs --oidc-audience'],
  [['serve', ...OIDC.slice(2)], '--oidc-audience needs --oidc-issuer'],
  [['serve', '--oidc-client-id', 'page'], '--oidc-client-id needs --oidc-issuer'],
  [['serve', ...OIDC, '--oidc-algorithm', 'HS256'], '--oidc-algorithm takes one of '],
  ...['schema', 'keys', 'sandbox', 'volume'].map(
    (name) => [['init', `--${name}`, 'x'], `--${name} needs --store`] as const,
  ),
  ...['unsafe-shared', 'without-volume'].map((name) => [['init', `--${name}`], `--${name} needs --store`] as const),
];

test.each(REFUSED)('%j is refused, and changes nothing', async (argv, message) => {
  const folder = tempFolder();
  const { code, stdout, stderr } = await turnpike(folder, argv);
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toContain(`USAGE: ${message}`);
  expect(readdirSync(folder)).toEqual([]);
  expect(stderr).toMatch(/: see `turnpike (?:help [a-z -]+|approvals)`[^\n]*\n$/);
});

const TYPED = COMMANDS.flatMap((command) =>
  command.options.flatMap((option) => (option.type === undefined ? [] : [{ command, option, name: option.name }])),
).filter(({ option }) => option.type !== PATH_TYPE && option.type !== NOTE_TYPE);

test.each(TYPED.map((typed) => [typed.command.name, typed.name, typed] as const))(
  '%s --%s refuses a text that is no value',
  (_command, name, { command, option }) => {
    const others = command.options.filter((one) => one.required === true && one.name !== name);
    const given = others.flatMap((one) => [`--${one.name}`, 'x']);
    const needed = option.needs === undefined ? [] : [`--${option.needs}`, 'x'];
    const operands = Array.from({ length: command.operands.min }, () => 'x');
    const argv = [...operands, `--${name}`, '\u001b[2J'.repeat(200), ...given, ...needed];
    expect(() => parseArguments(command, argv, { cwd: '/' })).toThrow(/^--[a-z-]+ (?:takes|needs) .* see `turnpike/);
  },
);

test('a configured value passes the same check', async () => {
  const folder = tempFolder();
  put(folder, 'turnpike.yaml', 'serve:\n  wait: soon\n');
  expect(await turnpike(folder, ['serve'])).toMatchObject({
    code: 2,
    stderr: 'USAGE: --wait takes 0 to 86400 seconds: see `turnpike help serve`\n',
  });
});

describe('the types of options', () => {
  const range = { takes: 'a number' };
  test.each([
    [range, '0', 0],
    [range, '007', 7],
    [range, '999999999', 999_999_999],
    [range, '1000000000', undefined],
    [range, '', undefined],
    [range, ' 1', undefined],
    [range, '+1', undefined],
    [range, '1.0', undefined],
    [range, '0x10', undefined],
    [range, '\u0661', undefined],
    [{ ...range, min: 1 }, '0', undefined],
    [{ ...range, min: 1 }, '1', 1],
    [{ ...range, min: 1 }, '01', undefined],
    [{ ...range, min: 5, max: 50 }, '4', undefined],
    [{ ...range, min: 5, max: 50 }, '50', 50],
    [{ ...range, min: 5, max: 50 }, '51', undefined],
    [{ ...range, max: 50 }, '0050', undefined],
  ])('an integer of %j: %j is %j', (given, text, value) => {
    expect(integerType(given).parse(text, '/')).toBe(value);
  });

  test('a word is one of the declared words, exactly', () => {
    const type = wordType(['one', 'two']);
    expect(['one', 'two', 'One', 'one ', ''].map((text) => type.parse(text, '/'))).toEqual([
      'one',
      'two',
      undefined,
      undefined,
      undefined,
    ]);
  });

  test('a path is relative to the working directory', () => {
    expect([PATH_TYPE.parse('a', '/srv'), PATH_TYPE.parse('/b', '/srv')]).toEqual([resolve('/srv/a'), '/b']);
  });
});
