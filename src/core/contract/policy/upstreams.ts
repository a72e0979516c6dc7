// MCP servers whose tools CALL_TOOL may call: what the operator declares about them (upstreams.json), and which
// definitions of their tools an operator has reviewed and accepted (upstream-pins.json).

import Type, { type Static } from 'typebox';
import { CONFIDENTIALITY_FLAGS } from './labels.js';
import { PolicyName } from './policy-header.js';
import { closed, OneOf, Sha256 } from '../shapes.js';

/** The file names in a contract folder. */
export const UPSTREAMS_FILE = 'upstreams.json';
export const UPSTREAM_PINS_FILE = 'upstream-pins.json';

export const UPSTREAM_SERVERS_MAX = 32;
export const UPSTREAM_TOOLS_MAX = 256;
const PINS_MAX = UPSTREAM_SERVERS_MAX * UPSTREAM_TOOLS_MAX;

/** Without a dot: the first dot of a tool name ends the server name. Names that the platform uses are reserved. */
const ServerName = Type.String({ pattern: '^(?!sandbox|export_bundle|audit_ledger)[A-Za-z][A-Za-z0-9_]{0,31}$' });
/** The part after the server name in the name by which lanes list a tool. */
const LocalName = Type.String({ pattern: '^[A-Za-z0-9_][A-Za-z0-9_.]{0,79}$' });
const EnvName = Type.String({ pattern: '^[A-Za-z_][A-Za-z0-9_]{0,127}$' });
const Text = Type.String({ minLength: 1, maxLength: 4_096, pattern: '^[^\\u0000]*$' });

/** Properties that the operator declares of a tool. What the server declares (its annotations) is not trusted. */
const toolProperties = {
  /** Whether its input leaves the platform. Default true. */
  outside: Type.Optional(Type.Boolean()),
  /** The confidentiality flags that its results may carry. Default: all. */
  confidentiality: Type.Optional(Type.Array(OneOf(CONFIDENTIALITY_FLAGS), { maxItems: CONFIDENTIALITY_FLAGS.length })),
  /** Timeout of a call. Default 30 s. */
  timeout_ms: Type.Optional(Type.Integer({ minimum: 100, maximum: 86_400_000 })),
  /** Size limit of a result as JSON; a longer one is truncated. Default 1 MiB. */
  result_bytes_max: Type.Optional(Type.Integer({ minimum: 4_096, maximum: 4_194_304 })),
};

export const UpstreamTool = Type.Object(
  {
    /** The name that the server uses. */
    tool: Type.String({ minLength: 1, maxLength: 128 }),
    /** The name that lanes use, after the server's name and a dot. Default: the same name. */
    as: Type.Optional(LocalName),
    /** Whether two calls with the same input have the effect of one. Default false. */
    idempotent: Type.Optional(Type.Boolean()),
    ...toolProperties,
  },
  closed,
);
export type UpstreamTool = Static<typeof UpstreamTool>;

const serverProperties = {
  name: ServerName,
  ...toolProperties,
  /** Tools whose properties differ from those of their server. */
  tools: Type.Optional(Type.Array(UpstreamTool, { maxItems: UPSTREAM_TOOLS_MAX })),
};

export const StdioUpstreamServer = Type.Object(
  {
    ...serverProperties,
    transport: Type.Literal('stdio'),
    /** The program and its arguments; no shell interprets them. */
    command: Type.Array(Text, { minItems: 1, maxItems: 64 }),
    /** Names of environment variables that the server gets besides PATH, HOME and LANG. Each must be set. */
    env: Type.Optional(Type.Array(EnvName, { maxItems: 64 })),
    /** Relative to the contract folder, which is the default. */
    cwd: Type.Optional(Text),
  },
  closed,
);
export type StdioUpstreamServer = Static<typeof StdioUpstreamServer>;

export const HttpUpstreamServer = Type.Object(
  {
    ...serverProperties,
    transport: Type.Literal('http'),
    /** https, or http to the local machine. */
    url: Type.String({ minLength: 1, maxLength: 2_048 }),
    token_env: Type.Optional(EnvName),
  },
  closed,
);
export type HttpUpstreamServer = Static<typeof HttpUpstreamServer>;

export const UpstreamServer = Type.Union([StdioUpstreamServer, HttpUpstreamServer]);
export type UpstreamServer = Static<typeof UpstreamServer>;

export const UpstreamsConfig = Type.Object(
  { version: Type.Literal(1), servers: Type.Array(UpstreamServer, { maxItems: UPSTREAM_SERVERS_MAX }) },
  closed,
);
export type UpstreamsConfig = Static<typeof UpstreamsConfig>;

/** Keyed by the name that lanes use: the SHA-256 of the canonical JSON of the tool's whole definition. */
export const UpstreamPins = Type.Object(
  {
    version: Type.Literal(1),
    pins: Type.Record(PolicyName, Sha256, { ...closed, maxProperties: PINS_MAX }),
  },
  closed,
);
export type UpstreamPins = Static<typeof UpstreamPins>;

export const NO_PINS: UpstreamPins = { version: 1, pins: {} };
