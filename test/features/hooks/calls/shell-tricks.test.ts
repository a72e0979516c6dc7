// Readings of shell that hide a command or a write, against the shipped policy (0061, 0077).

import { expect, test } from '@jest/globals';
import { contentOf } from '../../../../src/features/hooks/native-calls.js';
import { decideCall } from '../../../../src/features/hooks/calls/call-decision.js';
import { codingRules } from '../../../fixtures/hooks/coding-rules.js';
import { OPTION_TRICKS, PLAIN_COMMANDS, SHELL_TRICKS } from '../../../fixtures/hooks/shell-tricks.js';

const RULES = codingRules();
const decisionOf = (command: string): string =>
  decideCall(RULES, { tool: 'native.shell', input: { command: contentOf(command) } }).decision;

test.each([...SHELL_TRICKS, ...OPTION_TRICKS])('0061: %j is not allowed', (command) => {
  expect(decisionOf(command)).not.toBe('allow');
});

test.each(PLAIN_COMMANDS)('0061: %j is allowed', (command) => {
  expect(decisionOf(command)).toBe('allow');
});
