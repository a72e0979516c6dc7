// What somebody hands over to a session: a report, or a spec that is no file.

import { isUtf8 } from 'node:buffer';
import { isJsonObject, type JsonObject } from '../contract/json.js';
import { SPEC_BYTES_MAX, type SessionSpec } from '../contract/session-spec.js';
import { readSpec } from '../runtime/sessions/read-spec.js';
import { quoted } from './arguments.js';
import { usage, type Io } from './io.js';
import { jsonOf } from './json-argument.js';
import { beginningOf } from './payloads.js';

/** Twice what a session takes, since it may be written with spaces. */
const REPORT_BYTES_MAX = 262_144;
const FINDINGS_SHOWN = 5;

/**
 * A report in a file (`-`: stdin). Whether it is the right one, the session says.
 * @throws UsageError for what is no JSON object: that never becomes a report, and costs the step nothing
 */
export async function reportOf(name: string, io: Io): Promise<JsonObject> {
  const bytes = await beginningOf(name, REPORT_BYTES_MAX + 1, io);
  if (bytes.byteLength > REPORT_BYTES_MAX) throw usage(`${quoted(name)} has more than ${REPORT_BYTES_MAX} bytes`);
  if (!isUtf8(bytes)) throw usage('the report is not UTF-8');
  const report = jsonOf(Buffer.from(bytes).toString('utf8'), 'the report');
  if (isJsonObject(report)) return report;
  throw usage('the report is no JSON object');
}

/** The spec on stdin. @throws UsageError for what is none, with what is wrong with it */
export async function specOf(io: Io): Promise<SessionSpec> {
  const { spec, findings } = readSpec(await beginningOf('-', SPEC_BYTES_MAX + 1, io), null);
  if (spec !== null) return spec;
  const shown = findings
    .slice(0, FINDINGS_SHOWN)
    .map(({ line, rule, message }) => `line ${line}: ${message} (${rule})`);
  throw usage(`the spec cannot be worked through:\n${shown.join('\n')}`);
}
