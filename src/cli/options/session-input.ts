// What somebody hands over to a session: a report, or a spec that is no file.

import { isUtf8 } from 'node:buffer';
import { isJsonObject, type JsonObject } from '../../contract/json.js';
import { SPEC_BYTES_MAX, type SessionSpec } from '../../contract/session/session-spec.js';
import { readSpec } from '../../runtime/sessions/spec/read-spec.js';
import { quoteArgument } from '../arguments.js';
import { usageError, type Io } from '../io.js';
import { parseJsonArgument } from './json-argument.js';
import { readBeginning } from '../payloads.js';

/** Twice what a session takes, since it may be written with spaces. */
const REPORT_BYTES_MAX = 262_144;
const FINDINGS_SHOWN = 5;

/**
 * A report in a file (`-`: stdin). Whether it is the right one, the session says.
 * @throws UsageError for what is no JSON object: that never becomes a report, and costs the step nothing
 */
export async function readReport(name: string, io: Io): Promise<JsonObject> {
  const bytes = await readBeginning(name, REPORT_BYTES_MAX + 1, io);
  if (bytes.byteLength > REPORT_BYTES_MAX)
    throw usageError(`${quoteArgument(name)} has more than ${REPORT_BYTES_MAX} bytes`);
  if (!isUtf8(bytes)) throw usageError('the report is not UTF-8');
  const report = parseJsonArgument(Buffer.from(bytes).toString('utf8'), 'the report');
  if (isJsonObject(report)) return report;
  throw usageError('the report is no JSON object');
}

/** The spec on stdin. @throws UsageError for what is none, with what is wrong with it */
export async function readSpecFromStdin(io: Io): Promise<SessionSpec> {
  const { spec, findings } = readSpec(await readBeginning('-', SPEC_BYTES_MAX + 1, io), null);
  if (spec !== null) return spec;
  const shown = findings
    .slice(0, FINDINGS_SHOWN)
    .map(({ line, rule, message }) => `line ${line}: ${message} (${rule})`);
  throw usageError(`the spec cannot be worked through:\n${shown.join('\n')}`);
}
