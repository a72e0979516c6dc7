import { toRecordedScopeValue } from '../../../core/contract/free-text.js';
import type { ClientSession, EventRow } from '../../../core/contract/inspection/inspection.js';
import { usageError } from '../../../core/errors.js';
import { EmptyResult } from '../../../host/control/control-messages.js';
import { defineCommand, type CliCommand, type ExitCode } from '../../../interfaces/cli/command.js';
import { withHomeAccess, type HomeAccess } from '../../../interfaces/cli/home-access.js';
import type { Io } from '../../../interfaces/cli/io.js';
import { integerType } from '../../../interfaces/cli/option-types.js';
import { homeOf, withLedger } from '../../../interfaces/cli/options/folders.js';
import { PERSON_OPTIONS } from '../../../interfaces/cli/options/person-options.js';
import { escapeText, jsonLine } from '../../../interfaces/cli/text/terminal.js';
import { toEventRow } from '../../../interfaces/inspector/contract/event-row.js';
import type { LedgerReader } from '../../../runtime/ledger/ledger-reader.js';
import type { RunTree } from '../../../runtime/ledger/run-tree.js';
import { totalOf, CountFiles } from '../client-files/count-files.js';
import type { UnhookedItems } from '../clients/judge-hooks.js';
import {
  CoverageCounter,
  coverageText,
  type CallCoverage,
  FOLDERS_TEXT,
  isItemsText,
  itemsText,
  REPOSITORY_SINCE,
  missingComparisonTexts,
} from '../comparisons/call-coverage.js';
import type { HookReopening } from '../gate/hook-gate.js';
import { CLIENTS, type Client } from '../hook-event.js';
import { findItems, realPath } from '../install/inspect-client.js';
import { PROJECT_OPTION } from './agents-commands.js';

const LIMIT_DEFAULT = '20';

/** `turnpike agents sessions`: sessions of coding agents, each with a line of its coverage. */
export const agentsSessions: CliCommand = defineCommand({
  name: 'agents sessions',
  access: 'read',
  summary: 'List sessions of coding agents: calls seen, decided and reported, and gaps',
  operands: { usage: '', min: 0, max: 0 },
  options: [
    {
      name: 'limit',
      value: 'N',
      type: integerType({ min: 1, takes: 'a number of at least 1' }),
      default: LIMIT_DEFAULT,
      help: `list the last N sessions (default ${LIMIT_DEFAULT})`,
    },
    PROJECT_OPTION,
  ],
  notes: [
    'The newest session comes last. A gap is a call that its client has executed without a decision, as far as it has',
    'reported that, or an allowed call whose outcome stays unknown. Outcomes are what the client has reported. What was',
    'not compared is named: what its repository and its user have that runs without a hook is looked at for sessions of',
    'this project.',
  ],
  async run(args, io) {
    const { limit, project = io.cwd, json } = args.values;
    return withLedger(args, io, async ({ reader }): Promise<ExitCode> => {
      const items = new ItemsNow(project, io.environment);
      const files = new CountFiles(homeOf(args, io).home, io.environment);
      const sessions: SessionFacts[] = [];
      for await (const tree of reader.trees(limit, mayBeSession)) {
        const session = await readSession(reader, tree, items, files);
        if (session === null) continue;
        sessions.push(session);
        await io.stdout.write(json ? jsonLine(session) : sessionText(session));
      }
      if (sessions.length === 0 && !json) await io.stdout.write('no sessions of coding agents\n');
      for (const client of CLIENTS) {
        const listed = sessions.filter(({ name }) => name === client).map(({ session }) => session);
        const undecided = files.others(client, listed);
        if (undecided === 0) continue;
        const text = `${client}: ${undecided} calls of other sessions were denied without a decision\n`;
        await io.stdout.write(json ? jsonLine({ name: client, session: null, undecided }) : text);
      }
      return 0;
    });
  },
});

interface SessionFacts extends ClientSession {
  readonly run_id: string;
  readonly state: string;
  readonly subagents: readonly string[];
  readonly coverage: CallCoverage | null;
  /** Why calls may be missing. */
  readonly missing: readonly string[];
}

/** Trees of sessions of coding agents have such ids. Others may have them too. */
const mayBeSession = ({ root_run_id }: RunTree): boolean => /^run_[0-9a-f]{32}$/.test(root_run_id);

async function readSession(
  reader: LedgerReader,
  { root_run_id, runs }: RunTree,
  items: ItemsNow,
  files: CountFiles,
): Promise<SessionFacts | null> {
  const counter = new CoverageCounter();
  const agents: EventRow[] = [];
  for await (const entry of reader.entries(root_run_id)) {
    const row = toEventRow(JSON.stringify(entry), entry.seq, '');
    counter.add(row);
    if (row.creation?.kind === 'agent') agents.push(row);
  }
  const [main, ...others] = agents;
  const client = main?.creation?.client;
  if (main === undefined || client == null) return null;
  const coverage = counter.counts();
  const state = runs.find(({ run_id }) => run_id === main.run_id)?.outcome ?? 'running';
  return {
    ...client,
    run_id: main.run_id,
    state,
    subagents: others.map(({ run_id }) => run_id),
    coverage,
    missing: [...unrecordedOf(client, coverage, files), ...(await missingOf(client, items))],
  };
}

const clientOf = (name: string): Client | undefined => CLIENTS.find((one) => one === name);

/** Calls that were counted, and no later event has reported; those that name no session may be of any. */
function unrecordedOf(
  { name, session }: ClientSession,
  coverage: CallCoverage | null,
  files: CountFiles,
): readonly string[] {
  const client = clientOf(name);
  if (client === undefined) return [];
  const counted = totalOf(files.read(client, session)) - (coverage?.undecided ?? 0);
  const unnamed = totalOf(files.read(client, null));
  return [
    ...(counted > 0 ? [`${counted} calls denied without a decision, which are not recorded`] : []),
    ...(unnamed > 0 ? [`${unnamed} calls denied without a decision, which name no session`] : []),
  ];
}

/** What clients run without a hook now, in one project. */
class ItemsNow {
  readonly project: string;
  readonly #environment: Io['environment'];
  readonly #found = new Map<Client, UnhookedItems>();

  constructor(project: string, environment: Io['environment']) {
    [this.project, this.#environment] = [project, environment];
  }

  async of(client: Client): Promise<UnhookedItems> {
    const found = this.#found.get(client) ?? (await findItems(client, this.project, this.#environment));
    this.#found.set(client, found);
    return found;
  }
}

/** What there is now is known for sessions of this project. */
async function missingOf({ name, project, uncompared }: ClientSession, items: ItemsNow): Promise<readonly string[]> {
  const recorded = missingComparisonTexts(uncompared);
  const client = clientOf(name);
  const isHere = [items.project, realPath(items.project)].some((path) => toRecordedScopeValue(path) === project);
  if (client === undefined || !isHere) return [...recorded, REPOSITORY_SINCE];
  const now = await items.of(client);
  const counted = (['repository', 'user'] as const).filter((whose) => now[whose].length > 0);
  return [
    ...recorded.filter((text) => text !== FOLDERS_TEXT && !counted.some((whose) => isItemsText(whose, text))),
    ...counted.map((whose) => itemsText(whose, now[whose].length, now[whose].slice(0, NAMES_MAX))),
    ...(now.isComplete && !recorded.includes(FOLDERS_TEXT) ? [] : [FOLDERS_TEXT]),
  ];
}

const NAMES_MAX = 3;

function sessionText({ name, version, session, run_id, state, subagents, coverage, missing }: SessionFacts): string {
  const agents = subagents.length === 0 ? '' : `, subagents ${subagents.join(' ')}`;
  const lines = [
    `${name} ${version ?? '(unknown version)'}  session ${session}  ${state}`,
    `  ${run_id}${agents}`,
    `  ${coverage === null ? noCallsText(missing) : coverageText(coverage, missing)}`,
  ];
  return lines.map((line) => `${escapeText(line)}\n`).join('');
}

const noCallsText = (missing: readonly string[]): string =>
  missing.length === 0 ? 'no calls' : `no calls · not compared: ${missing.join('; ')}`;

/** `turnpike agents reopen`: lets a session of a coding agent go on that policy has ended. */
export const agentsReopen: CliCommand = defineCommand({
  name: 'agents reopen',
  access: 'write',
  summary: 'Let a session of a coding agent go on that was ended after too many denials',
  operands: { usage: 'RUN_ID', min: 1, max: 1 },
  options: PERSON_OPTIONS,
  notes: [
    'RUN_ID is the run that the denials of the session name. The role must be one of people. The session goes on in a new',
    'run tree, whose scope has your name; budgets and counts of denials start anew.',
  ],
  async run(args, io) {
    const { actor, role, json } = args.values;
    const reopening = { run: args.operands[0] ?? '', actor, role };
    await withHomeAccess(args, io, (home) => reopenSession(home, reopening), { hooks: true });
    const text = `the session of ${reopening.run} goes on`;
    await io.stdout.write(json ? jsonLine(reopening) : `${escapeText(text)}\n`);
    return 0;
  },
});

/** @throws what `HookGate.reopen` throws; UsageError if the process decides no calls of coding agents */
async function reopenSession({ turnpike, owner }: HomeAccess, reopening: HookReopening): Promise<void> {
  if (owner !== null) await owner.request({ op: 'reopen_hooks', reopening }, EmptyResult);
  else if (turnpike.hooks !== null) await turnpike.hooks.reopen(reopening);
  else throw usageError('this process decides no calls of coding agents');
}
