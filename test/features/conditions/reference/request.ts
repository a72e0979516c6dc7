// What a policy is evaluated against, read from the JSON that Cedar reads (docs.cedarpolicy.com, "Entities and context
// syntax").

import type { CedarValueJson, Context, EntityJson, EntityUidJson } from '@cedar-policy/cedar-wasm/nodejs';
import { parseDatetime, parseDecimal, parseDuration, parseIp } from './extensions.js';
import { boolOf, type EntityUid, type Evaluated, keyOf, type RecordValue, stringOf, type Value } from './values.js';

export interface EntityData {
  readonly parents: readonly EntityUid[];
  readonly attributes: ReadonlyMap<string, Value>;
  readonly tags: ReadonlyMap<string, Value>;
}

export interface EvaluationRequest {
  readonly principal: EntityUid;
  readonly action: EntityUid;
  readonly resource: EntityUid;
  readonly context: RecordValue;
  /** By the key of the entity. */
  readonly entities: ReadonlyMap<string, EntityData>;
}

export interface RequestJson {
  readonly principal: EntityUidJson;
  readonly action: EntityUidJson;
  readonly resource: EntityUidJson;
  readonly context: Context;
  readonly entities: EntityJson[];
}

export const requestOf = ({ principal, action, resource, context, entities }: RequestJson): EvaluationRequest => ({
  principal: uidOf(principal),
  action: uidOf(action),
  resource: uidOf(resource),
  context: { type: 'record', fields: valuesOf(context) },
  entities: new Map(
    entities.map(({ uid, attrs, parents, tags = {} }) => [
      keyOf(uidOf(uid)),
      { parents: parents.map(uidOf), attributes: valuesOf(attrs), tags: valuesOf(tags) },
    ]),
  ),
});

function uidOf(json: EntityUidJson): EntityUid {
  const { type, id } = '__entity' in json ? json.__entity : json;
  return { type: 'entity', entityType: type, id };
}

const valuesOf = (json: Readonly<Record<string, CedarValueJson>>): ReadonlyMap<string, Value> =>
  new Map(Object.entries(json).map(([name, value]) => [name, valueOf(value)]));

const PARSERS: Readonly<Record<string, (text: string) => Evaluated>> = {
  decimal: parseDecimal,
  datetime: parseDatetime,
  duration: parseDuration,
  ip: parseIp,
};

export function valueOf(json: CedarValueJson): Value {
  if (typeof json === 'boolean') return boolOf(json);
  if (typeof json === 'string') return stringOf(json);
  if (typeof json === 'number') return { type: 'long', value: BigInt(json) };
  if (Array.isArray(json)) return { type: 'set', members: json.map(valueOf) };
  if (json === null) throw new Error('Cedar has no null');
  if ('__entity' in json) return uidOf(json as EntityUidJson);
  if ('__extn' in json) return extensionOf(json.__extn as { readonly fn: string; readonly arg: string });
  return { type: 'record', fields: valuesOf(json) };
}

function extensionOf({ fn, arg }: { readonly fn: string; readonly arg: string }): Value {
  const value = PARSERS[fn]?.(arg);
  if (value === undefined || value.type === 'error') throw new Error(`${fn} does not accept ${arg}`);
  return value;
}
