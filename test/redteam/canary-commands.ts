// Every command of `turnpike`, as text and as JSON, and the files that it writes. The list is that of the command line:
// a command that is missing from the table below fails the walk.

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CliCommand } from '../../src/interfaces/cli/command.js';
import { COMMANDS } from '../../src/interfaces/cli/turnpike-command.js';
import { turnpike } from '../interfaces/cli/fake-io.js';
import { tempFolder } from '../fixtures/temp-folder.js';
import type { Output } from './canary-http.js';
import { CASE, SPEC, type CanaryWorld } from './canary-world.js';

interface Ground extends CanaryWorld {
  /** The folder for written files. */
  readonly folder: string;
  readonly runs: readonly string[];
  readonly entries: number;
}

/** Command lines without the name. */
type Lines = (ground: Ground) => readonly (readonly string[])[];

/** Not searched: the output goes to the agent that the command works for. */
const OF_AGENT = 'the own agent of the run or session reads it';
/** It only serves, and another walk covers what it serves. */
const SERVER = 'it serves what is walked over HTTP or MCP';

const none: Lines = () => [[]];
const ofSession: Lines = ({ sessions }) => sessions.map((id) => [id]);
const PERSON = ['--actor', 'olga', '--role', 'GOVERNANCE_AGENT'];
const OTHER = ['--actor', 'olga', '--role', 'ATTORNEY_ADMIN'];

const LINES: Readonly<Record<string, Lines | string>> = {
  init: none,
  step: OF_AGENT,
  run: OF_AGENT,
  decide: OF_AGENT,
  runs: ({ runs }) => [[], ...runs.map((run) => [run])],
  'runs report': ({ runs }) => [[runs[0] ?? '', '--outcome', 'done']],
  'runs resolve': ({ runs }) => [[runs[0] ?? '', '--outcome', 'done', ...OTHER]],
  replay: ({ runs, entries, folder }) => [
    [],
    ...runs.slice(0, 4).map((run) => [run]),
    ['--until', 'last', '--all'],
    ...[10, 60, entries - 1].map((until) => ['--until', String(until), '--all']),
    [join(folder, 'ledger.jsonl')],
    [join(folder, 'ledger.jsonl'), '--until', 'last'],
  ],
  'ledger verify': ({ folder }) => [[], [join(folder, 'ledger.jsonl')]],
  'ledger checkpoint': none,
  'ledger prove': () => [['@3']],
  'ledger check-proof': () => [['no-such-file']],
  'ledger export': ({ folder }) => [[join(folder, 'ledger.jsonl')], ['--entries', join(folder, 'entries.jsonl')]],
  'ledger erase': () => [['case-unknown', '--actor', 'olga', '--yes']],
  // The file is a moved part of the ledger: it is stored like the ledger, and shown to no reader.
  'ledger archive': ({ folder }) => [[join(folder, 'archive.jsonl'), '--before', '0']],
  // The home is open: the command refuses. What it writes is stored like the ledger, and shown to no reader.
  'home copy': ({ folder, bench }) => [[bench.home, join(folder, 'copy')]],
  'home reopen': none,
  worker: none,
  'cluster status': none,
  'machines diff': ({ runs }) => [[runs[0] ?? '', runs[1] ?? '']],
  'policy check': none,
  'policy schema': none,
  'policy format': none,
  'policy test': none,
  'policy pin': none,
  'policy deny': () => [['--list']],
  'policy simulate': ({ runs }) => [[], [runs[0] ?? '']],
  'policy coverage': ({ folder }) => [[], ['--sign', join(folder, 'coverage.json')]],
  'policy explain': ({ entries }) => Array.from({ length: entries }, (_, at) => [`@${at}`]),
  'session start': OF_AGENT,
  'session next': OF_AGENT,
  'session replay': OF_AGENT,
  'session report': OF_AGENT,
  'session heartbeat': OF_AGENT,
  'session verify': OF_AGENT,
  'session review': OF_AGENT,
  'session list': none,
  'session status': ofSession,
  'session prepare': ({ sessions }) =>
    sessions.flatMap((id) => [[id], ...['t1', 'v1', 't2'].map((task) => [id, '--task', task])]),
  'session packets': ofSession,
  'session check': ({ folder }) => [[join(folder, 'spec.json')]],
  'session pause': ofSession,
  'session resume': ofSession,
  'session rebase': ({ sessions }) => sessions.map((id) => [id, 'no-such-file']),
  'session waive': ({ sessions }) => sessions.map((id) => [id, 'p1', '--reason', 'other']),
  'session ack': ({ sessions }) => sessions.map((id) => [id, 'none', 'pass']),
  'session end': () => [['ses_none', '--reason', 'other']],
  'upstream list': none,
  'upstream pin': none,
  promote: () => [['--case', CASE, '--ticket', 'T-3', '--target', 'facts', '--record', '{"id":"x"}', ...OTHER]],
  export: () =>
    ['folder', 'zip'].map((format) => {
      const to = ['--to', format === 'zip' ? 'bag.zip' : 'bag'];
      return ['--case', CASE, '--reason', 'a request', ...to, ...(format === 'zip' ? ['--zip'] : []), ...OTHER];
    }),
  'export verify': ({ folder }) => [[join(folder, 'bag')], [join(folder, 'bag.zip')]],
  approvals: ({ asked }) => [[], ...asked.map(({ run_id, digest }) => [run_id, digest, ...PERSON])],
  approve: ({ asked }) => asked.map(({ run_id, digest }) => [run_id, digest, ...PERSON]),
  actions: none,
  mcp: SERVER,
  serve: SERVER,
  inspect: ({ folder }) => [[join(folder, 'ledger.jsonl'), '--html', join(folder, 'page.html')]],
  token: () => [['--actor', 'olga', '--role', 'ATTORNEY_ADMIN', '--right', 'observe']],
  'token list': none,
  'token revoke': () => [['tok_none']],
  version: none,
  'config print': none,
  completion: () => [['bash']],
  registrations: () => [['no-such-module.mjs']],
  // What it writes is stored like the ledger, and shown to no reader: a folder that the walk does not search.
  backup: () => [[join(tempFolder('canary-backup'), 'backup')]],
  restore: ({ folder }) => [[join(folder, 'no-such-backup'), join(folder, 'restored')]],
  'restore acknowledge': () => [OTHER],
  'failover accept': () => [['--actor', 'olga', '--yes']],
  doctor: none,
  hook: () => [['claude-code', '--case', CASE, '--lane', 'CASE_WORK', '--role', 'CASE_AGENT']],
  'agents install': ({ folder }) => [['claude-code', '--project', folder, '--yes', '--case', CASE]],
  'agents uninstall': ({ folder }) => [['claude-code', '--project', folder, '--yes']],
  'agents doctor': ({ folder }) => [['claude-code', '--project', folder]],
  'agents sessions': none,
  'agents reopen': () => [['run_none', '--actor', 'olga', '--role', 'ATTORNEY_ADMIN']],
  'keys list': none,
  'keys rotate': () =>
    [['--signing'], ['--cases']].map((kind) => [...kind, '--actor', 'olga', '--role', 'ATTORNEY_ADMIN']),
};

/** The output of every command, in the order of the help; then the files that they wrote. */
export async function* commandOutputs(
  world: CanaryWorld,
  folder: string,
  commands: readonly Pick<CliCommand, 'name'>[] = COMMANDS,
): AsyncGenerator<Output> {
  const unlisted = commands.map(({ name }) => name).filter((name) => LINES[name] === undefined);
  if (unlisted.length > 0) throw new Error(`the walk has no lines for ${unlisted.join(', ')}: add them`);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'spec.json'), JSON.stringify({ ...SPEC, title: 'None', phases: [] }));
  const ground = { ...world, folder, ...(await placesOf(world)) };
  const { home, contract } = world.bench;
  // The export comes first: other commands read its result.
  const order = ['ledger export', ...commands.map(({ name }) => name).filter((name) => name !== 'ledger export')];
  for (const name of order) {
    const lines = LINES[name];
    if (lines === undefined || typeof lines === 'string') continue;
    for (const line of lines(ground)) {
      for (const json of name === 'ledger export' ? [[]] : [[], ['--json']]) {
        const argv = [...name.split(' '), ...line, '--home', home, '--contract', contract, ...json];
        const { code, stdout, stderr, log } = await turnpike(folder, argv);
        yield {
          name: `turnpike ${name} ${line.join(' ')}${json.length > 0 ? ' --json' : ''} (${code})`,
          bytes: stdout,
        };
        yield { name: `turnpike ${name}: stderr`, bytes: stderr };
        yield { name: `turnpike ${name}: log`, bytes: log.join('\n') };
      }
    }
  }
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    yield { name: `file ${entry.name}`, bytes: readFileSync(path) };
  }
}

async function placesOf({ bench }: CanaryWorld): Promise<Pick<Ground, 'runs' | 'entries'>> {
  const runs: string[] = [];
  for await (const tree of bench.turnpike.ledger.trees()) runs.push(...tree.runs.map(({ run_id }) => run_id));
  return { runs, entries: await bench.turnpike.ledger.size() };
}
