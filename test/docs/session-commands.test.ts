// docs/session-commands.md compared with the command: its table, and the loop that it shows, line by line.

import { expect, test } from '@jest/globals';
import type { SessionAnswer } from '../../src/features/sessions/contract/session-answer.js';
import { SESSION_COMMANDS } from '../../src/features/sessions/commands/session-command-list.js';
import { initialised, jsonLines, put, turnpike } from '../interfaces/cli/fake-io.js';
import { PLAIN, putSpec, reportOf, stepOf } from '../interfaces/cli/session-fixture.js';
import { textOf } from '../sources.js';
import { tableOf } from './tables.js';

const DOCUMENT = 'docs/session-commands.md';

test('the table has every command of sessions, with its effect and its role', () => {
  const commands = SESSION_COMMANDS.flatMap((group) => group.commands).map(({ name, summary, options }) => {
    const [, role = ''] = /\(default (\w+)\)$/.exec(options.find((option) => option.name === 'role')?.help ?? '') ?? [];
    return [name, summary, role];
  });
  expect(tableOf(DOCUMENT, 'session-commands')).toEqual(commands);
});

test('the loop prints the output on the page, and its report has the same members, apart from ids and proofs', async () => {
  const folder = await initialised();
  putSpec(folder, PLAIN);
  const printed: string[] = [];
  let made = '';
  for (const command of ['session start plain.json', 'session next', 'session report report.json']) {
    const { stdout, stderr } = await turnpike(folder, command.split(' '));
    printed.push(`$ turnpike ${command}\n${stdout}${stderr}`);
    if (command !== 'session next') continue;
    const [answer] = jsonLines<SessionAnswer>((await turnpike(folder, ['session', 'replay', '--json'])).stdout);
    made = reportOf(stepOf(answer!.data!));
    put(folder, 'report.json', made);
  }
  const [, loop = '', report = ''] = textOf(DOCUMENT).split(/^```(?:json)?\n(?=[${])/m);
  expect(nameless(loop.split('\n```')[0] ?? '')).toBe(nameless(printed.join('\n').trimEnd()));
  const shown = JSON.parse(report.split('\n```')[0] ?? '') as object;
  expect(Object.keys(shown).sort()).toEqual(Object.keys(JSON.parse(made) as object).sort());
});

const nameless = (text: string): string =>
  text.replace(/ses_\w{21}/g, 'SESSION').replace(/(proof +)[\w-]{43}/g, '$1PROOF');
