// The real server of Restate: one node, then a cluster of three. Nodes and workers are killed under load.

import { describe, expect, test } from '@jest/globals';
import { spawnSync } from 'node:child_process';
import { ROOT } from '../../sources.js';

const CHAOS_MS = 600_000;

/** @returns what the campaign has printed, its errors included */
function runChaos(nodes: 1 | 3): string {
  const args = [
    'run',
    'campaign',
    '--silent',
    '--',
    'restate-chaos',
    '--nodes',
    String(nodes),
    '--clients',
    '4',
    '--seconds',
    '2',
  ];
  const { stdout, stderr } = spawnSync('npm', args, { cwd: ROOT, encoding: 'utf8', timeout: CHAOS_MS });
  return stdout + stderr;
}

describe('a ledger behind Restate', () => {
  test.each([1, 3] as const)(
    'with %d nodes, loses nothing and does nothing twice while nodes and workers are killed',
    (nodes) => {
      const printed = runChaos(nodes);
      process.stdout.write(printed);
      if (!printed.startsWith('skipped:'))
        expect(printed).toMatch(/\n[1-9]\d* acknowledged, \d+ requests repeated, 0 v/);
    },
    CHAOS_MS,
  );
});
