// What commands have in common by which people start promotions and exports, answer to them, and settle outcomes.

import { once } from 'node:events';
import type { Starter, HighRiskRun } from '../runtime/high-risk/options.js';
import { scopeOf } from './agent-session.js';
import { wrong } from './arguments.js';
import type { Args, Command, ExitCode, Option } from './command.js';
import type { Io } from './io.js';
import { escaped, jsonLine } from './terminal.js';

/** Who says it. */
export const PERSON_OPTIONS: readonly Option[] = [
  { name: 'actor', value: 'NAME', help: 'who you are, for the audit; 3 to 120 characters' },
  { name: 'role', value: 'ID', help: 'the role in which you do it' },
];

/** Who starts a promotion or an export, and in which case and lane. */
export const STARTER_OPTIONS: readonly Option[] = [
  { name: 'case', value: 'ID', help: 'the case' },
  ...PERSON_OPTIONS,
  { name: 'lane', value: 'ID', help: 'the lane, where it is not the one that the shipped policy has for this' },
  {
    name: 'scope',
    value: 'K=V',
    multiple: true,
    help: 'a further scope field that the lane requires; may be repeated',
  },
  { name: 'correlation', value: 'ID', help: 'the id that joins this run to others (default: a new one)' },
];

/** The value of an option that must be there. @throws UsageError */
export function required(command: Command, args: Args, name: string): string {
  const value = args.text(name);
  if (value === undefined) throw wrong(command, `--${name} is missing`);
  return value;
}

export const personOf = (command: Command, args: Args): Pick<Starter, 'actor' | 'role'> => ({
  actor: required(command, args, 'actor'),
  role: required(command, args, 'role'),
});

export function starterOf(command: Command, args: Args): Starter {
  const [lane, correlation] = [args.text('lane'), args.text('correlation')];
  const scope = scopeOf(command, args.list('scope'));
  return {
    case: required(command, args, 'case'),
    ...personOf(command, args),
    ...(lane === undefined ? {} : { lane }),
    ...(correlation === undefined ? {} : { correlation }),
    ...(scope === null ? {} : { scope }),
  };
}

/** Tells what became of a run that has been started: its end, or that it waits for people. 0 unless it ended badly. */
export async function seeThrough(run: HighRiskRun, args: Args, io: Io): Promise<ExitCode> {
  const { run_id, digest } = run;
  const json = args.flag('json');
  if (!json) await io.stdout.write(`${escaped(run_id)}\n`);
  if (digest !== null) {
    if (json) await io.stdout.write(jsonLine({ run_id, state: 'created', digest }));
    else await io.stdout.write(waitingText(run_id, digest));
    return 0;
  }
  const ending = await run.finished;
  const { state, reason } = ending;
  if (json) await io.stdout.write(jsonLine(ending));
  else await io.stdout.write(`${state}${reason === state ? '' : ` (${escaped(reason)})`}\n`);
  return state === 'completed' ? 0 : reason === 'AUDIT_FAILURE' ? 3 : 1;
}

const waitingText = (run_id: string, digest: string): string =>
  [
    `waits for approval of ${digest}`,
    '`turnpike approvals` shows what exactly is asked; whoever may approve it says',
    `  turnpike approve ${run_id} ${digest} --actor NAME --role ROLE`,
    '',
  ].join('\n');

/** Waits for the end of a run, for so many seconds, and no longer than the command is not stopped. */
export async function endWithin<T>(finished: Promise<T>, seconds: number, io: Io): Promise<T | null> {
  const over = new AbortController();
  const stop = AbortSignal.any([io.stop(), over.signal]);
  const timer = setTimeout(() => over.abort(), seconds * 1_000);
  try {
    return await Promise.race([finished, stop.aborted ? null : once(stop, 'abort').then(() => null)]);
  } finally {
    clearTimeout(timer);
  }
}
