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
} from '../../../interfaces/cli/command.js';
import { withHomeAccess } from '../../../interfaces/cli/home-access.js';
import { progressFor } from '../../../interfaces/cli/progress-bar.js';
import type { Io } from '../../../interfaces/cli/io.js';
import { readJsonFile, parseJsonArgument } from '../../../interfaces/cli/payloads.js';
import { wordType, type OptionType } from '../../../interfaces/cli/option-types.js';
import { reportHighRiskRun, starterOf, STARTER_OPTIONS } from '../../../interfaces/cli/options/person-options.js';

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
export const promote: CliCommand = defineCommand({
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
      return reportHighRiskRun(await home.promote(options), args, io);
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
