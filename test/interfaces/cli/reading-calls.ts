// Every call that only reads, for tests that each of them changes nothing.

import type { CliCommand } from '../../../src/interfaces/cli/command.js';

/** The calls of each command that has a reading form. RUN stands for a run of the home. */
export const CALLS: Readonly<Record<string, readonly (readonly string[])[]>> = {
  runs: [['runs'], ['runs', '--json', '--all'], ['runs', 'RUN']],
  replay: [['replay'], ['replay', 'RUN'], ['replay', '--until', 'last'], ['replay', '--until', '@3', '--all']],
  'ledger verify': [
    ['ledger', 'verify'],
    ['ledger', 'verify', '--no-replay', '--json'],
  ],
  'ledger checkpoint': [['ledger', 'checkpoint']],
  'ledger prove': [['ledger', 'prove', '@0']],
  'ledger export': [
    ['ledger', 'export', 'OUT'],
    ['ledger', 'export', 'OUT', '--entries'],
  ],
  'agents sessions': [
    ['agents', 'sessions'],
    ['agents', 'sessions', '--json'],
  ],
  'machines diff': [['machines', 'diff', 'RUN', 'current']],
  'policy simulate': [['policy', 'simulate']],
  'policy explain': [['policy', 'explain', 'RUN#1']],
  'policy coverage': [
    ['policy', 'coverage'],
    ['policy', 'coverage', '--json'],
    ['policy', 'coverage', '--sign', 'OUT'],
  ],
  'policy deny': [['policy', 'deny', '--list']],
  'session status': [['session', 'status']],
  'session list': [['session', 'list', '--json']],
  'session packets': [['session', 'packets', '--json']],
  approvals: [['approvals']],
  // For a ledger in a database: here it says so.
  'cluster status': [['cluster', 'status']],
  inspect: [['inspect', '--port', '0']],
  'keys list': [
    ['keys', 'list'],
    ['keys', 'list', '--json'],
  ],
  'token list': [['token', 'list', '--json']],
};

/** Whether a command has a form that only reads. */
export const isReading = ({ access, accessWith = [] }: CliCommand): boolean =>
  access === 'read' || accessWith.some((form) => form.access === 'read');
