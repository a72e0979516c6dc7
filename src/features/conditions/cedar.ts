// The Cedar engine, and the one place that calls it. It is loaded when the first condition file is read: who has no
// conditions needs no engine. Only text that has been split into single policies reaches it (`condition-file.ts`).

import type * as Cedar from '@cedar-policy/cedar-wasm/nodejs';
import { createRequire } from 'node:module';
import { setFlagsFromString } from 'node:v8';
import { PolicyError } from '../../core/errors.js';
import type { EngineVersion } from '../../core/policy/policy-features.js';

export type CedarValue = Cedar.CedarValueJson;
export type CedarEntity = Cedar.EntityJson;
export type CedarUid = Cedar.TypeAndId;
export type CedarSchema = Cedar.SchemaJson<string>;
export type CedarType = Cedar.Type<string>;
export type CedarRecordType = Extract<CedarType, { type: 'Record' }>;
export type CedarPolicyJson = Cedar.PolicyJson;

/** A question to the engine. The entities hold every ancestor that a policy may ask for. */
export interface CedarRequest {
  readonly principal: CedarUid;
  readonly action: CedarUid;
  readonly resource: CedarUid;
  readonly context: Readonly<Record<string, CedarValue>>;
  readonly entities: readonly CedarEntity[];
}

/** Which policies are satisfied, and which failed: ids in no order. */
export interface CedarAnswer {
  readonly satisfied: readonly string[];
  readonly failed: readonly CedarFailure[];
}
export interface CedarFailure {
  readonly id: string;
  /** The words of the engine. */
  readonly message: string;
}

/** What the engine or its validator says of one policy. Offsets are UTF-8 bytes of its text. */
export interface CedarProblem {
  readonly message: string;
  readonly help: string | null;
  readonly start: number;
}

let loaded: typeof Cedar | null = null;

/** @throws PolicyError POLICY_UNSUPPORTED if the engine, which every complete installation has, is missing */
function cedar(): typeof Cedar {
  if (loaded !== null) return loaded;
  try {
    // V8 of Node 20 ends the process when it deoptimizes a function that is in an inlined call of WebAssembly.
    setFlagsFromString('--no-turbo-inline-js-wasm-calls');
    loaded = createRequire(import.meta.url)('@cedar-policy/cedar-wasm/nodejs') as typeof Cedar;
    return loaded;
  } catch (cause) {
    const message =
      'the policy has conditions, and the engine that evaluates them, @cedar-policy/cedar-wasm, cannot be loaded: ' +
      'install Turnpike again with its dependencies';
    throw new PolicyError({ code: 'POLICY_UNSUPPORTED', message, cause });
  }
}

/** The engine that decides, as a tree pins it: of another language version no decision is taken from it. */
export const engineVersion = (): EngineVersion => ({
  language: cedar().getCedarLangVersion(),
  engine: cedar().getCedarVersion(),
});

/** Reads one static policy. */
export function parsePolicy(
  text: string,
): { readonly policy: CedarPolicyJson } | { readonly problems: readonly CedarProblem[] } {
  const answer = cedar().policyToJson(text);
  if (answer.type === 'success') return { policy: answer.json };
  return { problems: answer.errors.map(toProblem) };
}

/** The mistakes of the validator, and its warnings, by the id of the policy. */
export function validatePolicies(
  policies: Readonly<Record<string, string>>,
  schema: CedarSchema,
): ReadonlyMap<string, readonly CedarProblem[]> {
  const answer = cedar().validate({ schema, policies: { staticPolicies: { ...policies } } });
  if (answer.type === 'failure') {
    const message = `the types of the conditions are not usable: ${answer.errors.map((error) => error.message).join('; ')}`;
    throw new PolicyError({ code: 'POLICY_INVALID', message });
  }
  const found = new Map<string, CedarProblem[]>();
  for (const { policyId, error } of [...answer.validationErrors, ...answer.validationWarnings]) {
    found.set(policyId, [...(found.get(policyId) ?? []), toProblem(error)]);
  }
  return found;
}

/** The text as the formatter of Cedar writes it; null if it cannot be read. */
export function formatPolicies(text: string, width: number): string | null {
  const answer = cedar().formatPolicies({ policyText: text, lineWidth: width, indentWidth: 2 });
  return answer.type === 'success' ? answer.formatted_policy : null;
}

/** The schema in the language of Cedar. */
export function schemaToText(schema: CedarSchema): string {
  const answer = cedar().schemaToText(schema);
  if (answer.type === 'success') return answer.text;
  const message = `the types of the conditions are not usable: ${answer.errors.map((error) => error.message).join('; ')}`;
  throw new PolicyError({ code: 'POLICY_INVALID', message });
}

/** The engine forgets no prepared set, so the sets share these places; the one that had a place is prepared again. */
const PLACES = 256;
const owners = new Map<number, PreparedPolicies>();
let lastPlace = -1;

/** Policies that the engine has read. A permit of everything is added: only `forbid` decides. */
export class PreparedPolicies {
  readonly #policies: Readonly<Record<string, string>>;
  #place = -1;

  constructor(policies: Readonly<Record<string, string>>) {
    this.#policies = policies;
  }

  /**
   * All policies have failed for a request that the engine does not take.
   * @throws PolicyError POLICY_INVALID if it does not take the policies
   */
  decide(request: CedarRequest): CedarAnswer {
    const id = this.#prepared();
    const response = answerTo(request, id);
    if (response === null) return { satisfied: [], failed: Object.keys(this.#policies).map(toRefused) };
    const { decision, diagnostics } = response;
    return {
      satisfied: decision === 'deny' ? diagnostics.reason : [],
      failed: diagnostics.errors.map(({ policyId, error }) => ({ id: policyId, message: error.message })),
    };
  }

  #prepared(): string {
    if (owners.get(this.#place) !== this) {
      lastPlace = (lastPlace + 1) % PLACES;
      this.#place = lastPlace;
      owners.set(this.#place, this);
      const staticPolicies = { ...this.#policies, [PERMIT]: 'permit(principal, action, resource);' };
      const answer = cedar().preparsePolicySet(placeId(this.#place), { staticPolicies });
      if (answer.type === 'failure') {
        owners.delete(this.#place);
        const message = `Cedar refused: ${answer.errors.map((error) => error.message).join('; ')}`;
        throw new PolicyError({ code: 'POLICY_INVALID', message });
      }
    }
    return placeId(this.#place);
  }
}

const toRefused = (id: string): CedarFailure => ({ id, message: 'Cedar does not take the request' });

/** @returns null if the engine refuses the request, or fails on it: its values come from an agent */
function answerTo(
  { principal, action, resource, context, entities }: CedarRequest,
  preparsedPolicySetId: string,
): Cedar.Response | null {
  try {
    const answer = cedar().statefulIsAuthorized({
      ...{ principal, action, resource, context, preparsedPolicySetId },
      entities: entities as CedarEntity[],
      validateRequest: false,
    });
    return answer.type === 'failure' ? null : answer.response;
  } catch {
    return null;
  }
}

/** No id of a condition begins with a capital letter. */
const PERMIT = 'PERMIT';
const placeId = (place: number): string => `turnpike-conditions-${place}`;

const toProblem = ({ message, help, sourceLocations }: Cedar.DetailedError): CedarProblem => ({
  message,
  help: help ?? null,
  start: sourceLocations?.[0]?.start ?? 0,
});
