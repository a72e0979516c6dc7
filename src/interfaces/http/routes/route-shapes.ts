// Schemas that several routes share, and schemas of responses whose types are defined elsewhere.

import { PolicyCoverage } from '../../../core/contract/evidence/coverage-proof.js';
import Type, { type TSchema } from 'typebox';
import { EXPOSURES } from '../../../core/contract/run/response.js';
import { RUN_STATES, TERMINAL_STATES } from '../../../core/contract/run/run-context.js';
import { closed, Nullable, OneOf, RunId, Sha256 } from '../../../core/contract/shapes.js';
import type { ResponseShape } from './route.js';

export const LogIndex = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
/** The last entry that the client has; -1: none. */
export const After = Type.Integer({ minimum: -1, maximum: Number.MAX_SAFE_INTEGER });
export const Limit = (maximum: number) => Type.Integer({ minimum: 1, maximum });
export const RunParams = Type.Object({ run_id: RunId }, closed);
export const Scope = Type.Record(Type.String({ maxLength: 80 }), Type.String({ maxLength: 400 }), {
  maxProperties: 32,
});
export const ExposureShape = OneOf(EXPOSURES);

export const State = OneOf(RUN_STATES);
export const Ending = Type.Object({ state: OneOf(TERMINAL_STATES), reason: Type.String() }, closed);

export const jsonResponse = (description: string, schema: TSchema): ResponseShape => ({
  description,
  type: 'application/json',
  schema,
});
export const textResponse = (description: string, type: string): ResponseShape => ({ description, type });

/** An object to which later versions may add members. */
export const openObject = (properties: Record<string, TSchema>) =>
  Type.Object(properties, { additionalProperties: true });

const Text = Type.String();
const NullableText = Nullable(Text);

export const LedgerInfoShape = openObject({
  ledger_id: Sha256,
  begin: LogIndex,
  size: LogIndex,
  checkpoint: NullableText,
  key: NullableText,
  frontier: Type.Array(Sha256),
  live: Type.Boolean(),
  title: Text,
});
export const RowPageShape = openObject({
  from: LogIndex,
  texts: Type.Array(Text),
  time_base: Type.Integer(),
  rows: Type.Array(Type.Array(Type.Unknown())),
});
export const ChartShape = openObject({
  hash: Sha256,
  machine: Text,
  nodes: Type.Array(openObject({ id: Text, name: Text, parent: NullableText })),
  edges: Type.Array(openObject({ id: Text, source: Text, event: Text, target: NullableText })),
  layouts: Type.Object({ down: openObject({}), right: openObject({}) }, closed),
});
export const CourseShape = openObject({
  run_id: RunId,
  tree_id: Text,
  through: LogIndex,
  chart: Sha256,
  step_chart: Nullable(Sha256),
  edges: Type.Array(Text),
  states: Type.Array(Text),
  moves: Type.Array(Type.Array(Type.Integer())),
  steps: Type.Array(LogIndex),
});
export const StepStoryShape = openObject({
  run_id: RunId,
  step: Type.Integer(),
  proposal: LogIndex,
  trace: Nullable(LogIndex),
  response: NullableText,
  decision: Nullable(LogIndex),
  explanation: Type.Optional(Text),
});
export const ExplanationShape = openObject({
  log_index: LogIndex,
  decision: OneOf(['allow', 'deny']),
  rule_id: Text,
  checks: Type.Array(openObject({ check: Text, passed: Nullable(Type.Boolean()), detail: Text })),
  changes: Type.Array(openObject({ text: Text, gives: Text })),
});
export const CoverageShape = openObject({
  from: LogIndex,
  to: LogIndex,
  not_recomputed: Type.Integer(),
  policies: Type.Array(PolicyCoverage),
});
export const SessionViewShape = openObject({ session_id: Text, at: LogIndex, status: Text });
export const EventShape = openObject({
  log_index: LogIndex,
  text: Text,
  leaf_hash: Sha256,
  artifacts: Type.Array(
    openObject({
      sha256: Sha256,
      kind: Text,
      case_id: NullableText,
      byte_size: Type.Integer(),
      withheld: NullableText,
    }),
  ),
});
