import { usageError } from '../../../core/errors.js';
import { isJsonObject, type JsonObject } from '../../../core/contract/json.js';
import { WRITE_MODES } from '../../../core/contract/policy/lanes.js';
import { omitUndefined } from '../../../core/omit-undefined.js';
import {
  defineCommand,
  NO_OPERANDS,
  type CliCommand,
  type ArgumentsOf,
  type CommandOption,
  type CommandGroup,
} from '../../../interfaces/cli/command.js';
import { withHomeAccess } from '../../../interfaces/cli/home-access.js';
import { progressFor } from '../../../interfaces/cli/progress-bar.js';
import type { Io } from '../../../interfaces/cli/io.js';
import { readJsonFile, parseJsonArgument } from '../../../interfaces/cli/payloads.js';
import { wordType, type OptionType } from '../../../interfaces/cli/option-types.js';
import {
  reportHighRiskRun,
  starterOf,
  STARTER_OPTIONS,
  PERSON_OPTIONS,
} from '../../../interfaces/cli/options/person-options.js';
import { resolve } from 'node:path';
import { locateExports } from '../../../home/store-home.js';
import { EXPORT_KINDS } from '../export-kinds.js';
import { homeOf } from '../../../interfaces/cli/options/folders.js';
import { escapeText, jsonLine } from '../../../interfaces/cli/text/terminal.js';
import { approvals } from './approvals-command.js';
import { approve } from './approve-command.js';

const HASH_TYPE: OptionType<string> = {
  takes: 'a SHA-256 in lower-case hex',
  quotes: true,
  parse: (text) => (/^[0-9a-f]{64}$/u.test(text) ? text : undefined),
};

const RECORD_OPTIONS = [
  { name: 'record', value: 'JSON', help: 'the record as a JSON object' },
  { name: 'record-file', value: 'FILE', help: 'a file that contains the record (-: stdin)' },
] as const satisfies readonly CommandOption[];

/** `turnpike promote`: makes one record shared knowledge of all cases (S4 §10.1). */
const promote: CliCommand = defineCommand({
  name: 'promote',
  access: 'write',
  summary: 'Promote one sanitized record of a case to shared knowledge',
  operands: NO_OPERANDS,
  options: [
    ...STARTER_OPTIONS,
    { name: 'ticket', value: 'ID', required: true, help: 'the promotion ticket' },
    {
      name: 'target',
      value: 'TABLE',
      required: true,
      help: 'the table of shared knowledge, as registered by the service',
    },
    ...RECORD_OPTIONS,
    {
      name: 'mode',
      value: 'MODE',
      type: wordType(WRITE_MODES, ' or '),
      default: 'append',
      help: 'append (default) or upsert',
    },
    {
      name: 'source',
      value: 'SHA256',
      type: HASH_TYPE,
      multiple: true,
      help: 'an artifact of the case that the record was made from; may be repeated',
    },
  ],
  notes: [
    'The policy denies a record that repeats text of its case, and a table that the lane does not list. The exit code',
    'is 0 if the record was written or waits for approval, else 1. Tables are registered by the service that has the',
    'home directory open, not by this command: without such a service, every promotion is denied as',
    'target.not_registered.',
  ],
  async run(args, io) {
    const { ticket, target, mode, source } = args.values;
    const sources = source.length === 0 ? undefined : source;
    const record = await readRecord(args, io);
    const options = { ...starterOf(args), ticket, target, mode, record, ...omitUndefined({ sources }) };
    return withHomeAccess(args, io, async (home) => {
      progressFor(args, io).begin({ label: 'promoting', unit: 'entries', total: null });
      return reportHighRiskRun(await home.turnpike.promote(options), args, io);
    });
  },
});

async function readRecord(
  { values, usageError: error }: ArgumentsOf<typeof RECORD_OPTIONS>,
  io: Io,
): Promise<JsonObject> {
  const { record: text, recordFile: file } = values;
  if ((text === undefined) === (file === undefined)) throw error('give either --record or --record-file');
  const record =
    file === undefined ? parseJsonArgument(text ?? '', '--record') : await readJsonFile(file, '--record-file', io);
  if (!isJsonObject(record)) throw usageError('the record is not a JSON object');
  return record;
}

/** `turnpike export`: exports all that the ledger records of a case as a BagIt bag (S4 §10.2). */
const exportCase: CliCommand = defineCommand({
  name: 'export',
  access: 'write',
  summary: 'Export everything that the ledger records of a case, as a bag (BagIt 1.0)',
  operands: NO_OPERANDS,
  options: [
    ...STARTER_OPTIONS,
    {
      name: 'reason',
      value: 'TEXT',
      required: true,
      help: 'the reason, for the audit and the bag; up to 400 characters',
    },
    {
      name: 'to',
      required: true,
      value: 'PATH',
      help: 'the path of the bag below `exports` of the home directory; must not exist yet',
    },
    { name: 'zip', help: 'write a .zip file instead of a folder' },
    {
      name: 'kind',
      value: 'KIND',
      type: wordType(EXPORT_KINDS),
      default: EXPORT_KINDS[0],
      help: `the purpose of the export (default ${EXPORT_KINDS[0]})`,
    },
  ],
  notes: [
    `KIND is one of ${EXPORT_KINDS.slice(0, 4).join(', ')},`,
    `${EXPORT_KINDS.slice(4).join(', ')}. The ledger records the path of the bag below \`exports\`,`,
    'which may be a link to another folder. `turnpike export verify` checks the bag. The exit code is 0 if the bag was',
    'written or waits for approval, else 1.',
  ],
  async run(args, io) {
    const { reason, to, zip, kind } = args.values;
    const options = {
      ...starterOf(args),
      reason,
      // Absolute, because the process that owns the home may have another working directory.
      destination: resolve(locateExports(homeOf(args, io)), to),
      format: zip ? ('zip' as const) : ('folder' as const),
      kind,
    };
    return withHomeAccess(args, io, async (home) => {
      progressFor(args, io).begin({ label: 'exporting', unit: 'entries', total: null });
      return reportHighRiskRun(await home.turnpike.export(options), args, io);
    });
  },
});

const OUTCOMES = { done: 'done', 'not-executed': 'not_executed' } as const;
const WORDS = ['done', 'not-executed'] as const satisfies readonly (keyof typeof OUTCOMES)[];
const NOTE_CHARS_MAX = 400;

/** `turnpike runs resolve`: records what an operator found out about an action with an unknown outcome (D8). */
const runsResolve: CliCommand = defineCommand({
  name: 'runs resolve',
  access: 'write',
  summary: 'Settle an action with an unknown outcome: record what you found out',
  operands: { usage: 'RUN_ID', min: 1, max: 1 },
  options: [
    {
      name: 'outcome',
      value: 'WHAT',
      type: wordType(WORDS, ' or '),
      // Without it, the error message says what it takes.
      default: '',
      help: `${WORDS.join(' or ')}: whether the action was executed`,
    },
    ...PERSON_OPTIONS,
    { name: 'note', value: 'TEXT', help: `how you found out, for the audit; up to ${NOTE_CHARS_MAX} characters` },
  ],
  notes: [
    '`turnpike runs` marks the runs that need this. The run stays failed as OUTCOME_UNKNOWN; your statement is a later',
    'audit entry under your name. After it, the agent, if its run is still active, may propose the same action again.',
  ],
  async run(args, io) {
    const [run = ''] = args.operands;
    const { actor, role, note, json } = args.values;
    if (note !== undefined && note.length > NOTE_CHARS_MAX)
      throw args.usageError(`--note has more than ${NOTE_CHARS_MAX} characters`);
    const outcome = OUTCOMES[args.values.outcome];
    const resolution = { run, outcome, actor, role, ...omitUndefined({ note }) };
    await withHomeAccess(args, io, (home) => home.turnpike.resolve(resolution));
    await io.stdout.write(json ? jsonLine(resolution) : `${escapeText(`${run} is settled: ${outcome}`)}\n`);
    return 0;
  },
});

export const PROMOTION_COMMANDS: readonly CommandGroup[] = [
  { title: 'agents and runs', commands: [runsResolve, promote, exportCase] },
  { title: 'approvals', commands: [approvals, approve] },
];
