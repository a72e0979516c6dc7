// Reads the input of session commands: a report, or a spec on stdin.

import { isUtf8 } from 'node:buffer';
import { isJsonObject, type JsonObject } from '../../contract/json.js';
import { SPEC_BYTES_MAX, type SessionSpec } from '../../contract/session/session-spec.js';
import { readSpec } from '../../runtime/sessions/spec/read-spec.js';
import { quoteArgument } from '../arguments.js';
import { usageError, type Io } from '../io.js';
import { parseJsonArgument } from './json-argument.js';
import { readBeginning } from '../payloads.js';

/** Twice the limit of a session, because the input may contain white space. */
const REPORT_BYTES_MAX = 262_144;
const FINDINGS_SHOWN = 5;

/**
 * A report in a file (`-`: stdin). The session checks its content.
 * @throws UsageError if it is not a JSON object; such a text never reaches the session as a report
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

/**
 * The spec on stdin.
 * @throws UsageError for an invalid spec, with its mistakes
 */
export async function readSpecFromStdin(io: Io): Promise<SessionSpec> {
  const { spec, findings } = readSpec(await readBeginning('-', SPEC_BYTES_MAX + 1, io), null);
  if (spec !== null) return spec;
  const shown = findings
    .slice(0, FINDINGS_SHOWN)
    .map(({ line, rule, message }) => `line ${line}: ${message} (${rule})`);
  throw usageError(`the spec cannot be worked through:\n${shown.join('\n')}`);
}
