// The policy files of a contract folder: their schemas, the defaults of optional fields, and an example of each field.

import type { TSchema } from 'typebox';
import { ActionsPolicy } from '../../../src/core/contract/policy/actions-policy.js';
import { LanesPolicy } from '../../../src/core/contract/policy/lanes.js';
import { SignedOverlay } from '../../../src/core/contract/policy/overlay.js';
import { PinManifest } from '../../../src/core/contract/policy/pins.js';
import { RolesPolicy } from '../../../src/core/contract/policy/roles.js';
import { UpstreamPins, UpstreamsConfig } from '../../../src/core/contract/policy/upstreams.js';

export interface PolicyFileReference {
  readonly file: string;
  readonly purpose: string;
  readonly schema: TSchema;
  /** The declaration of the schema, by file and name. */
  readonly declared: readonly [file: string, name: string];
  /** The value that applies if an optional field is absent. */
  readonly defaults: Readonly<Record<string, string>>;
  /** A valid file that has every field. */
  readonly example: object;
}

const HEADER = { version: 'v1', contract_version: 'v1', last_updated: '2026-11-23' } as const;
const SHA256 = '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08';
const GIT_SHA = '4b825dc642cb6eb9a060e54bf8d69288fbee4904';
const NONE = 'none';
const UNLIMITED = 'not limited';
const ANY = 'any';
const SERVERS_OWN = "the server's value";

const POLICY = 'src/core/contract/policy';

const ACTIONS: PolicyFileReference = {
  file: 'policy/actions.yaml',
  purpose: 'What an agent may propose, within which limits, and how much of the outcome the agent sees.',
  schema: ActionsPolicy,
  declared: [`${POLICY}/actions-policy.ts`, 'ActionsPolicy'],
  defaults: {
    'actions[].extensions': 'all endings are allowed',
    'actions[].lane': "the agent's lane",
    'limits.invalid_per_run_max': '100, or `denials_per_run_max` if that is more',
    budgets: UNLIMITED,
    'budgets.steps': UNLIMITED,
    'budgets.tool_calls': UNLIMITED,
    'budgets.wall_ms': UNLIMITED,
    'budgets.bytes': UNLIMITED,
    'budgets.tokens': UNLIMITED,
    secrets: 'keys of well-known forms',
    approvals: NONE,
    decision_points: NONE,
    'decision_points[].token_env': NONE,
    'decision_points[].sends': NONE,
    'decision_points[].cache_seconds': 'an answer holds for one request',
    'approvals[].identity': 'any voter with the role, also of the token book',
    'approvals[].identity.issuers': 'any issuer',
    'approvals[].identity.acr': 'any',
    'approvals[].identity.max_age_seconds': 'any time',
    retries: 'no retry',
    'knobs.checkpoints': '`batch`',
    'knobs.finish_with_pending_request': '`cancel`',
  },
  example: {
    ...HEADER,
    actions: [{ action: 'WRITE_FILE', extensions: { path: ['.txt', '.md'] }, lane: 'SANDBOX_FILES' }],
    limits: {
      payload_bytes_max: 65_536,
      payload_depth_max: 32,
      path_bytes_max: 1_024,
      content_bytes_max: 49_152,
      read_bytes_max: 1_048_576,
      list_entries_max: 10_000,
      steps_per_run_max: 100_000,
      denials_per_run_max: 10,
      invalid_per_run_max: 100,
    },
    sandbox: { bytes_max: 104_857_600, files_max: 10_000, depth_max: 16, portable_names: false },
    response: { exposure: 'decision' },
    budgets: { steps: 1_000, tool_calls: 10_000, wall_ms: 3_600_000, bytes: 1_000_000, tokens: 200_000 },
    secrets: [{ name: 'internal_token', prefix: 'itk_', characters: 'base64url', min: 20 }],
    approvals: [
      {
        for: 'promotion',
        approver_roles: ['ATTORNEY_ADMIN'],
        quorum: 1,
        expires_minutes: 10_080,
        identity: { issuers: ['https://login.example'], acr: ['urn:example:mfa'], max_age_seconds: 900 },
      },
    ],
    decision_points: [
      {
        name: 'fraud',
        protocol: 'authzen',
        url: 'https://decisions.example/access/v1/evaluation',
        token_env: 'FRAUD_TOKEN',
        actions: ['CALL_TOOL:payments.refund'],
        sends: ['amount', 'order'],
        timeout_ms: 1_000,
        cache_seconds: 60,
      },
    ],
    retries: { max: 2, backoff_ms: 1_000 },
    knobs: {
      duplicate_proposal_ids: 'reject',
      dotdot: 'reject',
      extensions_stage: 'authorize',
      on_child_failure: 'fail',
      checkpoints: 'batch',
      finish_with_pending_request: 'cancel',
    },
  },
};

const LANES: PolicyFileReference = {
  file: 'policy/lanes.yaml',
  purpose: 'What may happen, for which callers and under which conditions. What no lane lists is denied.',
  schema: LanesPolicy,
  declared: [`${POLICY}/lanes.ts`, 'LanesPolicy'],
  defaults: {
    'lanes[].allowed_actions.tools': NONE,
    'lanes[].allowed_actions.writes': NONE,
    'lanes[].allowed_actions.reads': NONE,
    'lanes[].calls': 'every call of a listed tool is allowed',
    'lanes[].calls[].commands': ANY,
    'lanes[].calls[].options': ANY,
    'lanes[].calls[].paths': ANY,
    'lanes[].calls[].hosts': ANY,
    'lanes[].calls[].names': ANY,
    'lanes[].allow_embedded_text': '`false`',
    'lanes[].cross_case_reads': '`false`',
    'lanes[].refuses_labels': NONE,
    'lanes[].partial_outputs': '`false`',
    'lanes[].refuses_unmediated': '`false`',
    'lanes[].withholds_content': '`false`',
    'lanes[].exports_content': '`false`',
    'lanes[].content_checks': 'the defaults of its fields',
    'lanes[].content_checks.permits': NONE,
    'lanes[].content_checks.passage_words': '7',
    'lanes[].content_checks.countries': '`[US]`',
    'lanes[].content_checks.names': 'the table `entities`',
    'lanes[].content_checks.known_names': NONE,
    'lanes[].inherits_case_id': '`true`',
  },
  example: {
    ...HEADER,
    lanes: [
      {
        lane_id: 'SANDBOX_FILES',
        purpose: "Read and change the text files of one case's sandbox.",
        allowed_callers: { roles: ['SANDBOX_AGENT'] },
        allowed_actions: {
          tools: ['sandbox.read_file', 'sandbox.write_file'],
          writes: [{ table: 'sandbox_files', mode: 'upsert' }],
          reads: ['entities'],
        },
        calls: [
          {
            id: 'publish',
            tools: ['native.shell', 'native.fetch', 'native.other'],
            decision: 'approval',
            commands: ['git push', 'npm publish'],
            options: ['-u --tags --message='],
            paths: ['docs/**'],
            hosts: ['docs.example', '*.docs.example'],
            names: ['TodoWrite'],
          },
        ],
        scope: { requires: ['case_id', 'run_id'], prohibits: ['cross_case_lookup', 'external_export'] },
        audit: { required: true, level: 'full' },
        allow_embedded_text: false,
        cross_case_reads: false,
        refuses_labels: ['other_case', 'contains_privileged'],
        partial_outputs: false,
        refuses_unmediated: true,
        withholds_content: true,
        exports_content: false,
        content_checks: {
          permits: ['case_reference'],
          passage_words: 7,
          countries: ['US', 'GB'],
          names: { entities: ['name'] },
          known_names: ['Supreme Court'],
        },
        inherits_case_id: true,
      },
    ],
  },
};

const ROLES: PolicyFileReference = {
  file: 'policy/roles.yaml',
  purpose: 'Which lanes each role may use. The lane must name the role as well.',
  schema: RolesPolicy,
  declared: [`${POLICY}/roles.ts`, 'RolesPolicy'],
  defaults: { groups: NONE },
  example: {
    ...HEADER,
    roles: [
      {
        role_id: 'SANDBOX_AGENT',
        description: 'An agent that works with the files of one case.',
        class: 'agent',
        privileges: { lanes: ['SANDBOX_FILES'] },
      },
    ],
    groups: [{ group: 'finance', persons: ['anna', 'carl'] }],
  },
};

const PINS: PolicyFileReference = {
  file: 'pins.json',
  purpose: 'The hashes of the policy files where Git does not pin them. `turnpike policy pin` writes it.',
  schema: PinManifest,
  declared: [`${POLICY}/pins.ts`, 'PinManifest'],
  defaults: { accepted: NONE, 'accepted[].message': 'every message of the rule in the file' },
  example: {
    version: 'v1',
    files: [{ path: 'policy/lanes.yaml', git_sha: GIT_SHA, sha256: SHA256 }],
    accepted: [
      {
        rule: 'some-rule',
        path: 'policy/lanes.yaml',
        sha256: SHA256,
        reason: 'The lane serves one trusted service.',
        message: 'the message of the linter',
      },
    ],
  },
};

const UPSTREAMS: PolicyFileReference = {
  file: 'upstreams.json',
  purpose: 'The MCP servers whose tools CALL_TOOL may reach.',
  schema: UpstreamsConfig,
  declared: [`${POLICY}/upstreams.ts`, 'UpstreamsConfig'],
  defaults: {
    'servers[].outside': '`true`',
    'servers[].confidentiality': 'all three',
    'servers[].timeout_ms': '30,000',
    'servers[].result_bytes_max': '1,048,576',
    'servers[].tools': NONE,
    'servers[].tools[].as': 'the name in `tool`',
    'servers[].tools[].idempotent': '`false`',
    'servers[].tools[].outside': SERVERS_OWN,
    'servers[].tools[].confidentiality': SERVERS_OWN,
    'servers[].tools[].timeout_ms': SERVERS_OWN,
    'servers[].tools[].result_bytes_max': SERVERS_OWN,
    'servers[].env': NONE,
    'servers[].cwd': 'the contract folder',
    'servers[].token_env': 'no token',
  },
  example: {
    version: 1,
    servers: [
      {
        name: 'files',
        transport: 'stdio',
        command: ['npx', '--no-install', 'mcp-server-filesystem', '/srv/files'],
        env: ['LC_ALL'],
        cwd: 'servers',
        outside: false,
        confidentiality: ['contains_pii'],
        timeout_ms: 30_000,
        result_bytes_max: 1_048_576,
        tools: [
          {
            tool: 'read_text_file',
            as: 'read',
            idempotent: true,
            outside: false,
            confidentiality: [],
            timeout_ms: 5_000,
            result_bytes_max: 65_536,
          },
        ],
      },
      { name: 'weather', transport: 'http', url: 'https://weather.example/mcp', token_env: 'WEATHER_TOKEN' },
    ],
  },
};

const UPSTREAM_PINS: PolicyFileReference = {
  file: 'upstream-pins.json',
  purpose: 'The accepted definitions of upstream tools. `turnpike upstream pin` writes it.',
  schema: UpstreamPins,
  declared: [`${POLICY}/upstreams.ts`, 'UpstreamPins'],
  defaults: {},
  example: { version: 1, pins: { 'files.read': SHA256 } },
};

const OVERLAY: PolicyFileReference = {
  file: 'overlay.json',
  purpose:
    'The emergency overlay in the home directory: signed rules that deny. `turnpike policy deny` writes it. A rule\n' +
    'matches a request that has all of its values.',
  schema: SignedOverlay,
  declared: [`${POLICY}/overlay.ts`, 'SignedOverlay'],
  defaults: Object.fromEntries(
    ['role_id', 'lane_id', 'action', 'tool', 'table', 'case_id', 'run_id', 'actor_id'].map((name) => [
      `overlay.rules[].${name}`,
      ANY,
    ]),
  ),
  example: {
    overlay: {
      epoch: 1,
      issued_at_utc: '2026-11-23T09:00:00.000Z',
      rules: [
        {
          rule_id: 'deny-1',
          reason: 'The agent writes to a wrong table.',
          role_id: 'INTAKE_AGENT',
          lane_id: 'WRITE_INTAKE_ARTIFACTS',
          action: 'WRITE_RECORD',
          tool: 'sandbox.write_file',
          table: 'entities',
          case_id: 'case-1',
          run_id: 'run_1234567890',
          actor_id: 'agent-7',
        },
      ],
    },
    key_id: '0123456789abcdef',
    signature: `${'A'.repeat(86)}==`,
  },
};

export const POLICY_FILES: readonly PolicyFileReference[] = [
  ACTIONS,
  LANES,
  ROLES,
  PINS,
  UPSTREAMS,
  UPSTREAM_PINS,
  OVERLAY,
];
