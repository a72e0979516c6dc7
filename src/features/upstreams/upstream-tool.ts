// Makes a tool of CALL_TOOL from a tool of an upstream server. The deployer declares its properties: whether its input
// leaves the platform and whether a call may be repeated. Statements of the server about them are ignored.

import type { TObject } from 'typebox';
import { findRegistrationProblem, ToolDefinition } from '../../core/contract/policy/catalogue.js';
import type { JsonObject } from '../../core/contract/json.js';
import type { JsonSchema } from '../../core/contract/json-schema.js';
import { CONFIDENTIALITY_FLAGS } from '../../core/contract/policy/labels.js';
import type { UpstreamServer as Configured, UpstreamTool } from '../../core/contract/policy/upstreams.js';
import { isConforming } from '../../core/contract/validators.js';
import { ActionNotExecutedError } from '../../core/errors.js';
import { defineTool, type Tool } from '../../runtime/effects/define-effects.js';
import type { UpstreamToolDefinition } from './tool-definitions.js';
import {
  decodeInput,
  anyJsonSchema,
  convertInputSchema,
  convertOutputSchema,
} from '../../runtime/effects/convert-schema.js';
import { toToolResult, toolResultSchema, isConformingValue } from './tool-result.js';
import type { UpstreamServerClient } from './upstream-server-client.js';
import { printableText, weakenSchema } from '../../runtime/effects/weaken-schema.js';

const TIMEOUT_MS_DEFAULT = 30_000;
const RESULT_BYTES_DEFAULT = 1_048_576;

/** What the deployer declares about a tool, or about all tools of its server. */
type ToolFacts = Partial<Omit<UpstreamTool, 'tool'>>;

export const factsOf = ({ tools = [], ...server }: Configured, tool: string): ToolFacts => {
  const { outside, confidentiality, timeout_ms, result_bytes_max } = server;
  const common = { outside, confidentiality, timeout_ms, result_bytes_max };
  const configuredFacts = Object.fromEntries(
    Object.entries(common).filter(([, value]) => value !== undefined),
  ) as ToolFacts;
  return { ...configuredFacts, ...tools.find((one) => one.tool === tool) };
};

/** The name under which lanes list a tool. */
export const nameOf = (configured: Configured, tool: string): string =>
  `${configured.name}.${factsOf(configured, tool).as ?? tool}`;

/** @returns the tool, or why it cannot be registered, in text of this library */
export function upstreamTool(
  configured: Configured,
  definition: UpstreamToolDefinition,
  server: UpstreamServerClient,
): Tool | { readonly problem: string } {
  const { inputSchema, outputSchema, description } = definition.document;
  const walkedInput = weakenSchema(inputSchema as JsonObject);
  const walkedOutput = outputSchema === undefined ? null : weakenSchema(outputSchema as JsonObject);
  if (isProblem(walkedInput)) return { problem: `its input: ${walkedInput.problem}` };
  if (walkedOutput !== null && isProblem(walkedOutput)) return { problem: `its output: ${walkedOutput.problem}` };
  const name = nameOf(configured, definition.tool);
  const facts = factsOf(configured, definition.tool);
  const timeout = facts.timeout_ms ?? TIMEOUT_MS_DEFAULT;
  const bytesMax = facts.result_bytes_max ?? RESULT_BYTES_DEFAULT;
  const input = convertInputSchema(walkedInput);
  const structured = walkedOutput === null ? anyJsonSchema() : convertOutputSchema(walkedOutput);
  const tool = defineTool({
    name,
    summary: printableText(description) || name,
    // A plain JSON Schema: `registrationProblemOf` below checks whether it can be registered.
    input: input.schema as unknown as TObject,
    output: toolResultSchema({ structured }) as unknown as TObject,
    idempotent: facts.idempotent ?? false,
    timeout,
    resultBytesMax: bytesMax,
    outside: facts.outside ?? true,
    confidentiality: facts.confidentiality ?? CONFIDENTIALITY_FLAGS,
    run: async (proposed, { idempotency_key, signal, trace }) => {
      const decoded = decodeInput(input, proposed as JsonObject);
      if (decoded === null) throw unsentInputError('a text in it does not hold the JSON that it should');
      if (!isConformingValue(walkedInput, decoded))
        throw unsentInputError("it does not conform to the tool's own schema");
      const call = {
        tool: definition.tool,
        input: decoded,
        idempotency_key,
        ...(trace === undefined ? {} : { trace }),
      };
      const idempotent = facts.idempotent ?? false;
      const pinned = { ...call, sha256: definition.sha256, idempotent, prepare_ms: Math.ceil(timeout / 2) };
      return { ...toToolResult(await server.call(pinned, signal), { walked: walkedOutput, structured, bytesMax }) };
    },
  });
  const problem = registrationProblemOf(tool.definition);
  return problem === null ? tool : { problem };
}

function registrationProblemOf(definition: ToolDefinition): string | null {
  if (!isConforming(ToolDefinition, definition)) return 'no lane can list its name: give it another one with `as`';
  return findRegistrationProblem({ actions: [], tools: [definition], targets: [] });
}

const unsentInputError = (why: string): ActionNotExecutedError =>
  new ActionNotExecutedError(`the input was not sent: ${why}`, { retryable: false });

const isProblem = (candidate: JsonSchema | { readonly problem: string }): candidate is { readonly problem: string } =>
  typeof (candidate as { readonly problem?: unknown }).problem === 'string';
