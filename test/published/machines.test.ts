import { expect, test } from '@jest/globals';
import * as published from '../../src/published/machines.js';
import { policyOf } from '../../src/kernel/pinned-policy.js';
import { SHIPPED } from '../fixtures/tree.js';
import { machines } from '../machines/chart.js';

test('U-01: the entry point `turnpike/machines` creates the machines of runs and steps, and that of sessions', () => {
  const { orchestrator } = published.createMachines(policyOf(SHIPPED));
  expect(JSON.stringify(orchestrator.config)).toBe(JSON.stringify(machines.orchestrator.config));
  expect(published.createSessionMachine(orchestrator).id).toBe('session');
});
