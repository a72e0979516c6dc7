// The input and output schemas of the MCP tools, except those of actions and features. Draft 2020-12, self-contained.

import Type from 'typebox';
import { REASONING_CHARS_MAX } from '../../core/contract/run/proposal.js';
import { DecisionResponse, DetailedResponse, ExplainedResponse } from '../../core/contract/run/response.js';
import { TERMINAL_STATES } from '../../core/contract/run/run-context.js';
import { RUN_END_CAUSES } from './ended-run.js';
import { closed, Nullable, OneOf, RunId } from '../../core/contract/shapes.js';

export type ToolSchema = Readonly<Record<string, unknown>> & { readonly type: 'object' };

/** The schema as plain JSON. Its outermost type must be an object: MCP allows no other. */
export const toToolSchema = (schema: object, more: object = {}): ToolSchema => ({
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  ...(JSON.parse(JSON.stringify({ ...schema, ...more })) as object),
  type: 'object',
});

const Text = (description: string) => Type.String({ description });

export const Reasoning = Type.String({
  minLength: 1,
  maxLength: REASONING_CHARS_MAX,
  description: 'Why you want this. It is recorded, and changes no decision.',
});
export const RunArgument = Type.Unsafe<string>({
  ...RunId,
  description: 'The run into which this goes: next_step.run_id of a session. Default: that of the outstanding step.',
});

/** One raw payload as text. An invalid proposal is rejected in the phases of the step, not here. */
export const ProposeArguments = Type.Object(
  {
    proposal: Text(
      'The proposal as JSON text: an object with exactly schema_version ("1.0.0"), id (a new UUID), reasoning, action, args.',
    ),
    run_id: Type.Optional(RunArgument),
  },
  closed,
);

/** One response: explained, detailed or only the decision, by the exposure of the run. */
export const StepAnswer = { anyOf: [ExplainedResponse, DetailedResponse, DecisionResponse] };

/** There is no argument: actor, role, lane and case of a run are those of the server. */
export const NewRunArguments = Type.Object({}, closed);

export const NewRunOutput = Type.Object(
  {
    run_id: Text('The run for your next proposals'),
    opened: Type.Boolean({ description: 'Whether this call has opened it' }),
    previous: Nullable(
      Type.Object(
        {
          run_id: Type.String(),
          state: OneOf(TERMINAL_STATES),
          cause: OneOf(Object.keys(RUN_END_CAUSES)),
        },
        { ...closed, description: 'The run before, and how it ended' },
      ),
    ),
  },
  closed,
);
