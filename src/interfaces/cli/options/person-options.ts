// Options and helpers of the commands with which operators start promotions and exports, vote on them, and settle
// outcomes.

import { once } from 'node:events';
import { omitUndefined } from '../../../core/omit-undefined.js';
import type { RunStarter, HighRiskRun } from '../../../runtime/high-risk-options.js';
import { OPERATOR_DEFAULTS, type Operator } from '../../../runtime/operator-acts.js';
import { parseScope } from '../agent-command.js';
import type { ArgumentsOf, CommandArguments, CommandOption, ExitCode, OptionValues } from '../command.js';
import type { Io } from '../io.js';
import { escapeText, jsonLine } from '../text/terminal.js';

/** The person who runs the command. */
export const PERSON_OPTIONS = [
  { name: 'actor', value: 'NAME', required: true, help: 'your name, for the audit; 3 to 120 characters' },
  { name: 'role', value: 'ID', required: true, help: 'your role' },
] as const satisfies readonly CommandOption[];

/** The person who requests an act on the ledger, which policy decides. */
export const OPERATOR_OPTIONS = [
  { name: 'actor', value: 'NAME', required: true, help: 'your name, for the audit; 3 to 120 characters' },
  { name: 'role', value: 'ID', help: `your role (default: ${OPERATOR_DEFAULTS.role})` },
  { name: 'lane', value: 'ID', help: `the lane, if policy limits this act (default: ${OPERATOR_DEFAULTS.lane})` },
  { name: 'approved', value: 'RUN', help: 'the run of your earlier request, which people have approved since' },
] as const satisfies readonly CommandOption[];

type OperatorValues = OptionValues<typeof OPERATOR_OPTIONS>;

export const operatorOf = ({
  actor,
  role,
  lane,
  approved,
}: Omit<OperatorValues, 'approved'> & Partial<Pick<OperatorValues, 'approved'>>): Operator => ({
  actor,
  ...omitUndefined({ role, lane, approved }),
});

/** The person who starts a promotion or an export, its case and its lane. */
export const STARTER_OPTIONS = [
  { name: 'case', value: 'ID', required: true, help: 'the case' },
  ...PERSON_OPTIONS,
  { name: 'lane', value: 'ID', help: 'the lane (default: the lane of the shipped policy for this operation)' },
  {
    name: 'scope',
    value: 'K=V',
    multiple: true,
    help: 'a further scope field that the lane requires; may be repeated',
  },
  { name: 'correlation', value: 'ID', help: 'the correlation id of this run (default: a new id)' },
] as const satisfies readonly CommandOption[];

/** @throws UsageError for an invalid scope field */
export function starterOf(args: ArgumentsOf<typeof STARTER_OPTIONS>): RunStarter {
  const { case: case_id, actor, role, lane, correlation } = args.values;
  const scope = parseScope(args, args.values.scope);
  return { case: case_id, actor, role, ...omitUndefined({ lane, correlation, scope }) };
}

/**
 * Reports the end of a run that was started, or that it waits for approval.
 * @returns 0 unless it ended without success
 */
export async function reportHighRiskRun(run: HighRiskRun, args: CommandArguments, io: Io): Promise<ExitCode> {
  const { run_id, digest } = run;
  const json = args.values.json;
  if (!json) await io.stdout.write(`${escapeText(run_id)}\n`);
  if (digest !== null) {
    if (json) await io.stdout.write(jsonLine({ run_id, state: 'created', digest }));
    else await io.stdout.write(waitingText(run_id, digest));
    return 0;
  }
  const ending = await run.finished;
  const { state, reason } = ending;
  if (json) await io.stdout.write(jsonLine(ending));
  else await io.stdout.write(`${state}${reason === state ? '' : ` (${escapeText(reason)})`}\n`);
  return state === 'completed' ? 0 : reason === 'AUDIT_FAILURE' ? 3 : 1;
}

const waitingText = (run_id: string, digest: string): string =>
  [
    `waiting for approval of ${digest}`,
    '`turnpike approvals` prints the exact request; a person who may approve it runs',
    `  turnpike approve ${run_id} ${digest} --actor NAME --role ROLE`,
    '',
  ].join('\n');

/** Waits for the end of a run, at most `seconds` long, or until the command is stopped. */
export async function waitForEnd<T>(finished: Promise<T>, seconds: number, io: Io): Promise<T | null> {
  const over = new AbortController();
  const stop = AbortSignal.any([io.stop(), over.signal]);
  const timer = setTimeout(() => over.abort(), seconds * 1_000);
  try {
    return await Promise.race([finished, stop.aborted ? null : once(stop, 'abort').then(() => null)]);
  } finally {
    clearTimeout(timer);
  }
}
