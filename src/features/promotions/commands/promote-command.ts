import { usageError } from '../../../core/errors.js';
import { isJsonObject, type JsonObject } from '../../../core/contract/json.js';
import { WRITE_MODES, type WriteMode } from '../../../core/contract/policy/lanes.js';
import { quoteArgument, commandUsageError } from '../../../interfaces/cli/arguments.js';
import { NO_OPERANDS, type CommandArguments, type CliCommand } from '../../../interfaces/cli/command.js';
import { withHomeAccess } from '../../../interfaces/cli/home-access.js';
import { progressFor } from '../../../interfaces/cli/progress-bar.js';
import { type Io } from '../../../interfaces/cli/io.js';
import { readJsonFile, parseJsonArgument } from '../../../interfaces/cli/options/json-argument.js';
import {
  requireOption,
  reportHighRiskRun,
  parseStarter,
  STARTER_OPTIONS,
} from '../../../interfaces/cli/options/person-options.js';

/** `turnpike promote`: makes one record shared knowledge of all cases (S4 §10.1). */
export const promote: CliCommand = {
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
    { name: 'record', value: 'JSON', help: 'the record as a JSON object' },
    { name: 'record-file', value: 'FILE', help: 'a file that contains the record (-: stdin)' },
    { name: 'mode', value: 'MODE', help: 'append (default) or upsert' },
    {
      name: 'source',
      value: 'SHA256',
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
    const starter = parseStarter(promote, args);
    const sources = args.list('source');
    const options = {
      ...starter,
      ticket: requireOption(promote, args, 'ticket'),
      target: requireOption(promote, args, 'target'),
      mode: parseMode(args),
      record: await readRecord(args, io),
      ...(sources.length === 0 ? {} : { sources: sources.map(validateSource) }),
    };
    return withHomeAccess(args, io, async (home) => {
      progressFor(args, io).begin({ label: 'promoting', unit: 'entries', total: null });
      return reportHighRiskRun(await home.promote(options), args, io);
    });
  },
};

function parseMode(args: CommandArguments): WriteMode {
  const text = args.text('mode') ?? 'append';
  const mode = WRITE_MODES.find((name) => name === text);
  if (mode === undefined)
    throw commandUsageError(promote, `--mode takes ${WRITE_MODES.join(' or ')}, not ${quoteArgument(text)}`);
  return mode;
}

function validateSource(text: string): string {
  if (/^[0-9a-f]{64}$/u.test(text)) return text;
  throw commandUsageError(promote, `--source takes a SHA-256 in lower-case hex, not ${quoteArgument(text)}`);
}

async function readRecord(args: CommandArguments, io: Io): Promise<JsonObject> {
  const [text, file] = [args.text('record'), args.text('record-file')];
  if ((text === undefined) === (file === undefined))
    throw commandUsageError(promote, 'give either --record or --record-file');
  const record =
    file === undefined ? parseJsonArgument(text ?? '', '--record') : await readJsonFile(file, '--record-file', io);
  if (!isJsonObject(record)) throw usageError('the record is not a JSON object');
  return record;
}
