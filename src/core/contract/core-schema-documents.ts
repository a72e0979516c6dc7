// The documents of core that are published as JSON Schema (policies/contract/v1/schemas). Features add theirs.

import Type, { type TSchema } from 'typebox';
import { ActionsPolicy } from './policy/actions-policy.js';
import { ACTION_NAMES, ACTIONS, RECORD_ACTIONS } from './policy/catalogue.js';
import { ArtifactRef } from './artifact-ref.js';
import { RunCreated } from './run/entry.js';
import { AuditEvent } from './run/audit-event.js';
import { StepTrace } from './run/step-trace.js';
import { INPUT_SCHEMAS } from './run/input.js';
import { ExportBundle } from './evidence/export-bundle.js';
import { IdentitiesPolicy } from './policy/identities.js';
import { LanesPolicy } from './policy/lanes.js';
import { PinManifest } from './policy/pins.js';
import { Proposal } from './run/proposal.js';
import { DecisionResponse, DetailedResponse, ExplainedResponse } from './run/response.js';
import { RolesPolicy } from './policy/roles.js';
import { RunRecord } from './run/run-record.js';

export interface SchemaDocument {
  /** Part of the file name and of the `$id`; snake_case. */
  readonly name: string;
  readonly title: string;
  readonly schema: TSchema;
}

const BUILT_IN_ACTIONS = [...ACTION_NAMES.map((action) => ACTIONS[action]), ...Object.values(RECORD_ACTIONS)];

const ARGS: readonly SchemaDocument[] = BUILT_IN_ACTIONS.map(({ name, summary, args }) => ({
  name: `args_${name.toLowerCase()}`,
  title: `Arguments of ${name}. ${summary}`,
  schema: args,
}));

/** The document of the inputs, with those that features add. */
export function inputDocument(more: readonly TSchema[]): SchemaDocument {
  const schema = Type.Union([...Object.values(INPUT_SCHEMAS), ...more]);
  return { name: 'input', title: 'Ledger entry body: what entered the kernel', schema };
}

/** In the order of a step, then of a run, then of a policy. */
export const SCHEMA_DOCUMENTS: readonly SchemaDocument[] = [
  { name: 'proposal', title: 'What an agent proposes', schema: Proposal },
  ...ARGS,
  { name: 'response_explained', title: 'What an agent is answered, with an explanation', schema: ExplainedResponse },
  { name: 'response_detailed', title: 'What an agent is answered, in full', schema: DetailedResponse },
  { name: 'response_decision', title: 'What an agent is answered, decision only', schema: DecisionResponse },
  { name: 'run_record', title: 'The manifest of one run', schema: RunRecord },
  { name: 'export_bundle', title: 'The manifest of what leaves the platform', schema: ExportBundle },
  { name: 'artifact_ref', title: 'A reference to content', schema: ArtifactRef },
  inputDocument([]),
  { name: 'run_created', title: 'Ledger entry body: the birth of a run', schema: RunCreated },
  { name: 'audit_event', title: 'Ledger entry body: one line of the audit', schema: AuditEvent },
  { name: 'step_trace', title: 'Ledger entry body: what became of one step', schema: StepTrace },
  { name: 'lanes', title: 'Policy file lanes.yaml', schema: LanesPolicy },
  { name: 'roles', title: 'Policy file roles.yaml', schema: RolesPolicy },
  { name: 'actions', title: 'Policy file actions.yaml', schema: ActionsPolicy },
  { name: 'identities', title: 'Policy file identities.yaml', schema: IdentitiesPolicy },
  { name: 'pins', title: 'Pin manifest pins.json', schema: PinManifest },
];

/** The document as a JSON Schema of draft 2020-12: plain JSON without external references. */
export const jsonSchemaOf = ({ name, title, schema }: SchemaDocument): Readonly<Record<string, unknown>> => ({
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  $id: `urn:turnpike:contract:v1:${name}`,
  title,
  ...(JSON.parse(JSON.stringify(schema)) as Record<string, unknown>),
});
