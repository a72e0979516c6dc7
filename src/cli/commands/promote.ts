import { isJsonObject, type JsonObject } from '../../contract/json.js';
import { WRITE_MODES, type WriteMode } from '../../contract/lanes.js';
import { quoted, wrong } from '../arguments.js';
import { NO_OPERANDS, type Args, type Command } from '../command.js';
import { withHome } from '../held-home.js';
import { usage, type Io } from '../io.js';
import { jsonFile, jsonOf } from '../json-argument.js';
import { required, seeThrough, starterOf, STARTER_OPTIONS } from '../people.js';

/** `turnpike promote`: one record for knowledge that all cases share (S4 §10.1). */
export const promote: Command = {
  name: 'promote',
  summary: 'Promote one sanitized record of a case to shared knowledge',
  operands: NO_OPERANDS,
  options: [
    ...STARTER_OPTIONS,
    { name: 'ticket', value: 'ID', help: 'the promotion ticket' },
    { name: 'target', value: 'TABLE', help: 'the table of shared knowledge, as the service has registered it' },
    { name: 'record', value: 'JSON', help: 'the record' },
    { name: 'record-file', value: 'FILE', help: 'a file that holds it (-: stdin)' },
    { name: 'mode', value: 'MODE', help: 'append (the default) or upsert' },
    { name: 'source', value: 'SHA256', multiple: true, help: 'an artifact of the case that it was made from; repeat' },
  ],
  notes: [
    'A record that repeats text of its case is denied, as is one of another table than the lane lists. The exit code is',
    '0 when it was written, or waits for approval; else 1.',
    'Tables are registered by the service that has the home, not by this command: while no such service runs, every',
    'promotion is denied as target.not_registered.',
  ],
  async run(args, io) {
    const starter = starterOf(promote, args);
    const sources = args.list('source');
    const options = {
      ...starter,
      ticket: required(promote, args, 'ticket'),
      target: required(promote, args, 'target'),
      mode: modeOf(args),
      record: await recordOf(args, io),
      ...(sources.length === 0 ? {} : { sources: sources.map(checkedSource) }),
    };
    return withHome(args, io, async (home) => seeThrough(await home.promote(options), args, io));
  },
};

function modeOf(args: Args): WriteMode {
  const text = args.text('mode') ?? 'append';
  const mode = WRITE_MODES.find((name) => name === text);
  if (mode === undefined) throw wrong(promote, `--mode takes ${WRITE_MODES.join(' or ')}, not ${quoted(text)}`);
  return mode;
}

function checkedSource(text: string): string {
  if (/^[0-9a-f]{64}$/u.test(text)) return text;
  throw wrong(promote, `--source takes a SHA-256 in lower-case hex, not ${quoted(text)}`);
}

async function recordOf(args: Args, io: Io): Promise<JsonObject> {
  const [text, file] = [args.text('record'), args.text('record-file')];
  if ((text === undefined) === (file === undefined)) throw wrong(promote, 'give either --record or --record-file');
  const record = file === undefined ? jsonOf(text ?? '', '--record') : await jsonFile(file, '--record-file', io);
  if (!isJsonObject(record)) throw usage('the record is no JSON object');
  return record;
}
