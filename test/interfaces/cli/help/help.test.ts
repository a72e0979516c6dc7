// Help, suggestions, completion, the manual page and errors as JSON.

import { describe, expect, test } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { parseArguments } from '../../../../src/interfaces/cli/arguments.js';
import { COMMON_OPTIONS } from '../../../../src/interfaces/cli/command.js';
import { SHELLS, completionScript } from '../../../../src/interfaces/cli/commands/completion-command.js';
import { helpText, overviewText, manPage } from '../../../../src/interfaces/cli/help/help-text.js';
import { preparedAnswer, type PreparedTexts } from '../../../../src/interfaces/cli/help/prepared-answers.js';
import { COMMAND_GROUPS, COMMANDS } from '../../../../src/interfaces/cli/turnpike-command.js';
import { readPackageVersion } from '../../../../src/system/package-version.js';
import { jsonLines, tempFolder, turnpike } from '../fake-io.js';

const NAMES = COMMANDS.map(({ name }) => name);

test('every command has a name of its own and a group', () => {
  expect(new Set(NAMES).size).toBe(NAMES.length);
  expect(COMMAND_GROUPS.every(({ title, commands }) => title !== '' && commands.length > 0)).toBe(true);
});

test('the help of every command has its options, in lines that fit a screen, and marks those that it requires', () => {
  for (const command of COMMANDS) {
    const text = helpText(command);
    expect(Math.max(...text.split('\n').map(({ length }) => length))).toBeLessThanOrEqual(120);
    for (const { name, required = false } of command.options) {
      const [line = ''] = text.split('\n').filter((one) => new RegExp(`^  --${name}\\b`).test(one));
      expect([command.name, name, line !== '', line.endsWith('(required)')]).toEqual([
        command.name,
        name,
        true,
        required,
      ]);
    }
  }
});

test('a command names the option that is missing', () => {
  const rows = COMMANDS.flatMap((command) => {
    const required = command.options.filter((option) => option.required === true).map(({ name }) => name);
    return required.map((missing) => ({ command, missing, others: required.filter((name) => name !== missing) }));
  });
  expect(rows.length).toBeGreaterThan(10);
  for (const { command, missing, others } of rows) {
    const operands = Array.from({ length: command.operands.min }, () => 'x');
    const argv = [...operands, ...others.flatMap((name) => [`--${name}`, 'given'])];
    expect(() => parseArguments(command, argv, { cwd: '/' })).toThrow(`--${missing} is missing`);
  }
});

describe('suggestions', () => {
  test.each([
    [['serv'], 'serve'],
    [['ledgr', 'verify'], 'ledger verify'],
    [['ledger', 'verfy'], 'ledger verify'],
    [['policy-check'], 'policy check'],
    [['aprove', '--role', 'x'], 'approve'],
  ])('%j: did you mean %s?', async (argv, name) => {
    const { code, stderr } = await turnpike(tempFolder(), argv);
    expect(code).toBe(2);
    expect(stderr).toMatch(`\`${name}\``);
  });

  test('a command that resembles none gets no suggestion', async () => {
    expect((await turnpike(tempFolder(), ['frobnicate'])).stderr).toBe(
      'USAGE: unknown command "frobnicate": see `turnpike help`\n',
    );
  });

  test('a misspelt option is suggested', async () => {
    const { code, stderr } = await turnpike(tempFolder(), ['serve', '--allow-hots', 'x']);
    expect([code, stderr]).toEqual([2, expect.stringContaining('did you mean --allow-host?')]);
  });
});

test('with --json an error is one line of JSON, with its code and the exit code', async () => {
  const { code, stderr, stdout } = await turnpike(tempFolder(), ['runs', '--json', '--home', 'nowhere']);
  expect(stdout).toBe('');
  expect(jsonLines(stderr)).toEqual([
    { error: { code: 'USAGE', message: expect.stringContaining('nowhere') as unknown, exit_code: code } },
  ]);
  expect(jsonLines((await turnpike(tempFolder(), ['runz', '--json'])).stderr)).toHaveLength(1);
});

describe('what the build prepares', () => {
  const texts: PreparedTexts = {
    version: readPackageVersion(),
    overview: overviewText(COMMAND_GROUPS),
    commands: Object.fromEntries(COMMANDS.map((command) => [command.name, helpText(command)])),
  };

  test.each([['help'], ['--help'], ['-h'], ['version'], ['--version'], ['help', 'runs'], ['help', 'ledger', 'verify']])(
    'is what the command prints: %s %s %s',
    async (...argv) => {
      const given = argv.filter((word) => typeof word === 'string');
      const { code, stdout } = await turnpike(tempFolder(), given);
      expect({ code, stdout }).toEqual({ code: 0, stdout: preparedAnswer(given, texts) });
    },
  );

  test('has the help of every command, which `--help` prints too', async () => {
    for (const name of NAMES) expect(preparedAnswer(['help', ...name.split(' ')], texts)).toBe(texts.commands[name]);
    const { stdout } = await turnpike(tempFolder(), ['session', 'start', '--help']);
    expect(stdout).toBe(texts.commands['session start']);
  });

  test.each([[['help', 'toString']], [['help', '__proto__']], [['version', '--json']], [['serve']], [[]]])(
    'leaves %j to the command',
    (argv) => expect(preparedAnswer(argv, texts)).toBeNull(),
  );
});

describe('completion', () => {
  test.each(SHELLS)('the script of %s names every command and option', async (shell) => {
    const { code, stdout } = await turnpike(tempFolder(), ['completion', shell]);
    expect({ code, stdout }).toEqual({ code: 0, stdout: completionScript(shell, COMMANDS) });
    for (const { name, options } of COMMANDS) {
      expect(stdout).toMatch(name.split(' ')[0] ?? '');
      for (const option of [...options, ...COMMON_OPTIONS]) expect(stdout).toMatch(option.name);
    }
  });

  const complete = (line: string): string[] => {
    const words = line.split(' ');
    const program = `${completionScript('bash', COMMANDS)}
COMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length - 1}; _turnpike; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const { stdout, stderr } = spawnSync('bash', ['-c', program], { encoding: 'utf8', cwd: tempFolder() });
    expect(stderr).toBe('');
    return stdout.split('\n').filter((word) => word !== '');
  };

  test.each([
    ['turnpike led', ['ledger']],
    ['turnpike ledger ver', ['verify']],
    ['turnpike ledger verify --no', ['--no-replay']],
    ['turnpike export ', ['verify']],
    ['turnpike runs --hom', ['--home']],
    ['turnpike token list --js', ['--json']],
    ['turnpike frobnicate', []],
  ])('bash completes %j', (line, words) => {
    expect(complete(line)).toEqual(words);
  });

  test('bash completes every command from its words', () => {
    const first = new Set(NAMES.map((name) => name.split(' ')[0]));
    expect(complete('turnpike ').toSorted()).toEqual([...first].toSorted());
  });

  test('an unknown shell is refused', async () => {
    expect((await turnpike(tempFolder(), ['completion', 'csh'])).stderr).toMatch('"csh" is not one of bash, zsh, fish');
  });
});

test('the manual page names every command and option, and no line is an unknown request', () => {
  const page = manPage(COMMAND_GROUPS, '1.2.3');
  for (const { name, options } of COMMANDS) {
    expect(page).toMatch(`turnpike ${name.replaceAll('-', '\\-')}`);
    for (const option of options) expect(page).toMatch(`\\-\\-${option.name.replaceAll('-', '\\-')}`);
  }
  const requests = page.split('\n').filter((line) => /^[.']/.test(line));
  expect(requests.filter((line) => !/^\.(?:TH|SH|SS|TP|PP|B|I)(?: |$)/.test(line))).toEqual([]);
});
