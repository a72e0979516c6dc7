// 50,000 random events of all clients with secrets in random places (0064).

import { expect, test } from '@jest/globals';
import { codingRules } from '../../../fixtures/hooks/coding-rules.js';
import { answerSecretEvents } from './secret-events.js';

test('0064: of 50,000 events with secrets, none is recorded and each decision is about what the client executes', () => {
  const { wrong, ...counts } = answerSecretEvents(1, 50_000, codingRules());
  console.log(`50000 events: ${counts.unreadable} unreadable, ${counts.denied} denied, ${counts.allowed} allowed`);
  expect(wrong).toEqual([]);
  expect(counts.allowed).toBeGreaterThan(1_000);
});
