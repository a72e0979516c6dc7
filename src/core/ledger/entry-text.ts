// Canonical JSON of a step's entries, from templates. The keys are already in order, so a body takes a microsecond and
// no sorting. The generic canonicalizer is authoritative and writes every rare case; tests compare the templates with
// it, member by member.

import { type ArtifactRef } from '../contract/artifact-ref.js';
import { sha256 } from '../contract/hash.js';
import type { AuditEvent } from '../contract/run/audit-event.js';
import { canonicalJson, quote } from '../contract/json.js';
import type { PathFact } from '../contract/run/effect.js';
import type {
  Entry,
  FactsInput,
  ProposalInput,
  RecordedInput,
  ResultInput,
  RunCreated,
  SealedEntry,
} from '../contract/run/entry.js';
import type { StepTrace } from '../contract/run/step-trace.js';

/** The canonical JSON of an entry's body. @throws InvariantError if it contains a value that JSON cannot represent */
export function bodyText(entry: Entry): string {
  switch (entry.type) {
    case 'input':
      return inputText(entry.body);
    case 'run_created':
      return createdText(entry.body);
    case 'audit_event':
      return eventText(entry.body);
    case 'step_trace':
      return traceText(entry.body);
    default:
      return canonicalJson((entry as Entry).body);
  }
}

function inputText(input: RecordedInput): string {
  switch (input.kind) {
    case 'proposal':
      return input.prompt === undefined ? proposalText(input) : canonicalJson(input);
    case 'facts':
      return factsText(input);
    case 'result':
      return resultText(input);
    default:
      return canonicalJson(input);
  }
}

const proposalText = ({ input_id, overlay, payload, prefix, run_id, seen, time, tokens }: ProposalInput): string =>
  `{"input_id":${quote(input_id)},"kind":"proposal","overlay":${overlay === null ? 'null' : sharedText(overlay)},` +
  `"payload":${refText(payload)}${prefix === undefined ? '' : `,"prefix":${refText(prefix)}`},"run_id":${quote(run_id)},"seen":${canonicalJson(seen)},"time":${quote(time)},` +
  `"tokens":${canonicalJson(tokens)}}`;

function factsText(input: FactsInput): string {
  const { counters, decisions, facts, input_id, reserved, run_id, time } = input;
  return (
    `{${counters === undefined ? '' : `"counters":${canonicalJson(counters)},`}${decisions === undefined ? '' : `"decisions":${canonicalJson(decisions)},`}` +
    `"facts":{"paths":[${facts.paths.map(factText).join()}],"usage":${canonicalJson(facts.usage)}},` +
    `"input_id":${quote(input_id)},"kind":"facts"${reserved === undefined ? '' : `,"reserved":${canonicalJson(reserved)}`},` +
    `"run_id":${quote(run_id)},"time":${quote(time)}}`
  );
}

const factText = (fact: PathFact): string =>
  fact.status === 'file' && Number.isSafeInteger(fact.bytes)
    ? `{"bytes":${fact.bytes},"inode":${quote(fact.inode)},"mtime_ns":${quote(fact.mtime_ns)},"status":"file"}`
    : canonicalJson(fact);

const resultText = ({ cause, explanation, input_id, result, run_id, settled, status, time }: ResultInput): string =>
  `{"cause":${quoteOrNull(cause)}${optionalRef(',"explanation":', explanation)},"input_id":${quote(input_id)},"kind":"result","result":${refOrNull(result)},` +
  `"run_id":${quote(run_id)},"settled":${settled ? 'true' : 'false'},"status":"${status}","time":${quote(time)}}`;

const createdText = (run: RunCreated): string =>
  `{"actor":${sharedText(run.actor)},"budget":${canonicalJson(run.budget)},"case_id":${quoteOrNull(run.case_id)},"contract_version":${quote(run.contract_version)},` +
  `"correlation_id":${quote(run.correlation_id)},"created_at_utc":${quote(run.created_at_utc)},` +
  `${run.executor === undefined ? '' : `"executor":"${run.executor}",`}"exposure":${quoteOrNull(run.exposure)},"label":${run.label === null ? 'null' : sharedText(run.label)},"lane_id":${quoteOrNull(run.lane_id)},"link":${quoteOrNull(run.link)},` +
  `"parent_run_id":${quoteOrNull(run.parent_run_id)},"policy_versions":${sharedText(run.policy_versions)},` +
  `"request":${requestText(run.request)},"retry":${canonicalJson(run.retry)},"role_id":${quote(run.role_id)},"root_run_id":${quote(run.root_run_id)},` +
  `"run_id":${quote(run.run_id)},"run_kind":"${run.run_kind}","scope":${sharedText(run.scope)},` +
  `"taxonomy_versions":${canonicalJson(run.taxonomy_versions)}}`;

const requestText = (request: RunCreated['request']): string =>
  request === null ? 'null' : `{"hash_sha256":${quote(request.hash_sha256)},"name":${quote(request.name)}}`;

/** An omitted member has no text, so each member writes its own comma. */
function eventText(event: AuditEvent): string {
  const run = runTextOf(event);
  return (
    `{"action_type":"${event.action_type}"${run.actor}${authzText(event.authz)}${run.identity}` +
    `${event.error === undefined ? '' : `,"error":${canonicalJson(event.error)}`},"event_id":${quote(event.event_id)}` +
    (event.identity === undefined ? '' : `,"identity":${canonicalJson(event.identity)}`) +
    `${refsText(',"input_artifacts":', event.input_artifacts)}${run.lane}${textMember(',"notes":', event.notes)}` +
    `,"outcome":"${event.outcome}"${textMember(',"outcome_reason":', event.outcome_reason)}` +
    `${refsText(',"output_artifacts":', event.output_artifacts)}${run.pins}` +
    (event.reported === undefined ? '' : `,"reported":${canonicalJson(event.reported)}`) +
    textMember(',"request_hash_sha256":', event.request_hash_sha256) +
    `${textMember(',"response_hash_sha256":', event.response_hash_sha256)}${run.ids},"sequence":${event.sequence}` +
    `${event.severity === undefined ? '' : `,"severity":"${event.severity}"`}${targetText(event.target)}` +
    `${run.taxonomy},"timestamp_utc":${quote(event.timestamp_utc)}}`
  );
}

const textMember = (named: string, text: string | undefined): string => (text === undefined ? '' : named + quote(text));

function authzText(authz: AuditEvent['authz']): string {
  if (authz === undefined) return '';
  const { decision, policy_ref, rule_id } = authz;
  return `,"authz":{"decision":"${decision}"${textMember(',"policy_ref":', policy_ref)},"rule_id":${quote(rule_id)}}`;
}

function targetText(target: AuditEvent['target']): string {
  if (target === undefined) return '';
  const { artifact_ref, name, operation, target_type } = target;
  const ref = artifact_ref === undefined ? '' : `"artifact_ref":${refText(artifact_ref)},`;
  return `,"target":{${ref}"name":${quote(name)}${textMember(',"operation":', operation)},"target_type":"${target_type}"}`;
}

/** The text that all events of a run share, in pieces between which the other members are written. */
interface RunText {
  readonly event: AuditEvent;
  readonly actor: string;
  readonly identity: string;
  readonly lane: string;
  readonly pins: string;
  readonly ids: string;
  readonly taxonomy: string;
}

/** The shared text of the last event's run: events of a mediated run follow each other. */
let lastRunText: RunText | null = null;

function runTextOf(event: AuditEvent): RunText {
  if (lastRunText === null || !isSameRun(lastRunText.event, event)) lastRunText = newRunText(event);
  return lastRunText;
}

const isSameRun = (one: AuditEvent, other: AuditEvent): boolean =>
  one.run_id === other.run_id &&
  one.policy_versions === other.policy_versions &&
  one.actor === other.actor &&
  one.lane_id === other.lane_id &&
  one.case_id === other.case_id &&
  one.role_id === other.role_id &&
  one.root_run_id === other.root_run_id &&
  one.parent_run_id === other.parent_run_id &&
  one.correlation_id === other.correlation_id &&
  one.taxonomy_versions === other.taxonomy_versions;

function newRunText(event: AuditEvent): RunText {
  const { taxonomy_versions } = event;
  return {
    event: event,
    actor: `,"actor":${sharedText(event.actor)}`,
    identity:
      `${textMember(',"case_id":', event.case_id)},"contract_version":${quote(event.contract_version)}` +
      `,"correlation_id":${quote(event.correlation_id)}`,
    lane: textMember(',"lane_id":', event.lane_id),
    pins: `${textMember(',"parent_run_id":', event.parent_run_id)},"policy_versions":${sharedText(event.policy_versions)}`,
    ids:
      `${textMember(',"role_id":', event.role_id)},"root_run_id":${quote(event.root_run_id)}` +
      `,"run_id":${quote(event.run_id)}`,
    taxonomy: taxonomy_versions === undefined ? '' : `,"taxonomy_versions":${canonicalJson(taxonomy_versions)}`,
  };
}

const traceText = (trace: StepTrace): string =>
  `{"action":${quoteOrNull(trace.action)},"args_summary":${canonicalJson(trace.args_summary)},` +
  `"cause":${quoteOrNull(trace.cause)},"completed_at":${quote(trace.completed_at)},"decision":"${trace.decision}",` +
  `"error_code":${quoteOrNull(trace.error_code)}${textMember(',"explanation":', trace.explanation)}` +
  `${optionalRef(',"explanation_ref":', trace.explanation_ref)},"mediated_run_id":${quoteOrNull(trace.mediated_run_id)},` +
  `"outcome":${quote(trace.outcome)},"payload":${refText(trace.payload)},` +
  `"phase_failed_at":${quoteOrNull(trace.phase_failed_at)},"proposal_id":${quoteOrNull(trace.proposal_id)},` +
  `"reasoning":${reasoningText(trace.reasoning)},"received_at":${quote(trace.received_at)},` +
  `"replay_of":${canonicalJson(trace.replay_of)},"response_sha256":${quote(trace.response_sha256)},` +
  `"result":${refOrNull(trace.result)},"rule_id":${quoteOrNull(trace.rule_id)},"run_id":${quote(trace.run_id)},` +
  `"schema_version":${quoteOrNull(trace.schema_version)},"step_index":${trace.step_index}}`;

const reasoningText = (reasoning: StepTrace['reasoning']): string =>
  reasoning === null ? 'null' : `{"chars":${reasoning.chars},"sha256":${quote(reasoning.sha256)}}`;

const quoteOrNull = (text: string | null): string => (text === null ? 'null' : quote(text));

const optionalRef = (named: string, ref: ArtifactRef | undefined): string =>
  ref === undefined ? '' : named + refText(ref);

const refOrNull = (ref: ArtifactRef | null): string => (ref === null ? 'null' : refText(ref));

function refsText(named: string, refs: readonly ArtifactRef[] | undefined): string {
  if (refs === undefined) return '';
  return `${named}[${refs.length === 1 && refs[0] !== undefined ? refText(refs[0]) : refs.map(refText).join()}]`;
}

function refText(ref: ArtifactRef): string {
  if (ref.lineage !== undefined || hasRareMember(ref)) return canonicalJson(ref);
  const { artifact_id, artifact_kind, byte_size, case_id, hash_sha256, scope } = ref;
  return (
    `{"artifact_id":${quote(artifact_id)},"artifact_kind":${quote(artifact_kind)}` +
    `${byte_size === undefined ? '' : `,"byte_size":${byte_size}`}${textMember(',"case_id":', case_id)}` +
    `,"hash_sha256":${quote(hash_sha256)}${scope === undefined ? '' : `,"scope":"${scope}"`}}`
  );
}

/** Whether the reference has a member that references of a step do not have. */
const hasRareMember = (ref: ArtifactRef): boolean =>
  ref.storage_locator !== undefined ||
  ref.content_type !== undefined ||
  ref.created_at_utc !== undefined ||
  ref.hash_source !== undefined ||
  ref.confidentiality !== undefined;

const sharedTexts = new WeakMap<object, string>();

/** Caches the text of an object that is created once per tree, never changes, and occurs in almost every entry. */
function sharedText(value: object): string {
  const known = sharedTexts.get(value);
  if (known !== undefined) return known;
  const text = canonicalJson(value);
  sharedTexts.set(value, text);
  return text;
}

/**
 * Serializes an entry to the text that is stored and hashed: its canonical JSON. The envelope is a template, because
 * its keys are known and already in order. The body stays nested in it, so no member of a body can replace an envelope
 * field.
 * @throws InvariantError if the entry contains a value that JSON cannot represent
 */
export function sealEntry(entry: Entry): SealedEntry {
  // Includes the leaf's leading zero byte, so that the text is concatenated once, for the hash, and not twice.
  const leaf =
    `\0{"body":${bodyText(entry)},"prev":${quote(entry.prev)},"seq":${entry.seq},` +
    `"tree_id":${quote(entry.tree_id)},"type":"${entry.type}"}`;
  const leaf_hash = sha256(leaf);
  return { entry, text: leaf.slice(1), leaf_hash };
}
