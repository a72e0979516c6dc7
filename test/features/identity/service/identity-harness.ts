// The HTTP service with an OpenID Connect issuer, and an export that waits for votes.

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { identitiesSource } from '../../../../src/home/policy/home-policy.js';
import { pinManifest } from '../../../../src/home/policy/manifest-policy-source.js';
import { overlayFiles } from '../../../../src/home/policy/overlay-file.js';
import { writeOverlay } from '../../../../src/home/policy/overlay-writer.js';
import { winstonLog } from '../../../../src/system/winston-log.js';
import type { IdentityOptions } from '../../../../src/interfaces/service/identity-service.js';
import { homePaths } from '../../../../src/home/home-paths.js';
import type { ServeOptions } from '../../../../src/interfaces/http/serve.js';
import { Bench } from '../../../fixtures/bench.js';
import type { ManualClock } from '../../../fixtures/manual-clock.js';
import { AUDIENCE, OidcIssuer } from '../../../fixtures/oidc-issuer.js';
import { service, serviceEdit } from '../../../fixtures/service.js';
import { HttpBench } from '../../../interfaces/http/http-harness.js';

export const ROLE = 'ATTORNEY_ADMIN';

export interface IdentityStaging {
  /** The approval rule for exports, after its roles. Default: one voter of an issuer. */
  readonly rule?: string;
  /** identities.yaml, from the addresses of the issuers. */
  readonly identities?: (issuers: readonly string[]) => string;
  readonly issuers?: number;
  readonly identity?: Partial<IdentityOptions>;
  readonly serving?: Partial<ServeOptions>;
}

export const identitiesText = (issuers: readonly string[], mappings: string, rest = ''): string =>
  [
    'version: v1',
    'contract_version: v1',
    'last_updated: 2026-11-25',
    'issuers:',
    ...issuers.flatMap((issuer) => [`  - issuer: ${issuer}`, '    mappings:', mappings]),
    rest,
    '',
  ].join('\n');

/** Members of `counsel` vote and read; members of `agents` act in one case. */
export const MAPPINGS = `
      - id: counsel
        claims: { groups: [counsel] }
        actor: { claim: name }
        person: { claim: employee }
        role: ${ROLE}
        case: any
        rights: [observe, approve, govern]
      - id: agents
        claims: { groups: [agents] }
        actor: { claim: name }
        role: SANDBOX_AGENT
        case: { claim: case_id }
        rights: [act]`;

export class IdentityBench {
  readonly http: HttpBench;
  readonly issuers: readonly OidcIssuer[];

  private constructor(http: HttpBench, issuers: readonly OidcIssuer[]) {
    this.http = http;
    this.issuers = issuers;
  }

  static async open(staging: IdentityStaging = {}): Promise<IdentityBench> {
    const { rule = 'identity: {}', issuers: count = 1, identities, identity = {}, serving = {} } = staging;
    const { tools, targets } = service();
    const bench = await Bench.open({
      tools,
      targets,
      edit: (name, text) =>
        serviceEdit(name, text) +
        (name === 'actions'
          ? `\napprovals:\n  - { for: export, approver_roles: [${ROLE}], quorum: 2, expires_minutes: 60, ${rule} }\n`
          : ''),
    });
    const issuers = await Promise.all(Array.from({ length: count }, () => OidcIssuer.open()));
    for (const issuer of issuers) issuer.now = () => bench.clock.now();
    const urls = issuers.map(({ url }) => url);
    writeIdentities(bench, (identities ?? ((all) => identitiesText(all, MAPPINGS)))(urls));
    const http = await HttpBench.on(bench, {
      clock: bench.clock,
      identity: {
        issuers: urls.map((issuer) => ({ issuer, audience: AUDIENCE })),
        identities: identitiesSource(bench.contract),
        ...identity,
      },
      log: winstonLog('silent'),
      // More refusals come from one address here than a service allows.
      admission: { bulkShare: 1_000, failures: 1_000_000 },
      ...serving,
    }).catch(async (error: unknown) => {
      await bench.close();
      await Promise.all(issuers.map((issuer) => issuer.close()));
      throw error;
    });
    return new IdentityBench(http, issuers);
  }

  get issuer(): OidcIssuer {
    const [first] = this.issuers;
    if (first === undefined) throw new Error('there is no issuer');
    return first;
  }

  get clock(): ManualClock {
    return this.http.bench.clock;
  }

  /** A member of counsel. */
  counsel(name = 'Anna Berg', changes: Record<string, unknown> = {}, from = this.issuer): Promise<string> {
    const person = { sub: `sub of ${name}`, name, employee: `employee ${name}`, groups: ['staff', 'counsel'] };
    return from.token({ ...person, ...changes });
  }

  /** Starts an export that waits for votes. */
  async pending(requester = 'requester'): Promise<{ readonly run_id: string; readonly digest: string }> {
    const { turnpike, folder } = this.http.bench;
    const { run_id, digest } = await turnpike.export({
      actor: requester,
      role: ROLE,
      case: 'case-local',
      reason: 'a request',
      destination: join(folder, `bag-${Math.random()}`),
    });
    return { run_id, digest: digest ?? '' };
  }

  /** The rule that judged a vote, or the status and code of its refusal. */
  async vote(token: string, { run_id, digest }: { readonly run_id: string; readonly digest: string }): Promise<string> {
    const json = { run_id, digests: [digest], decision: 'approve' };
    const response = await this.http.ask('/approvals', token, { json });
    const body = (await response.json()) as { votes?: readonly { rule_id: string }[]; code?: string };
    return body.votes?.[0]?.rule_id ?? `${response.status} ${body.code ?? ''}`;
  }

  suspend(actor_id: string): Promise<unknown> {
    const paths = homePaths(this.http.bench.home);
    return writeOverlay(overlayFiles(paths.overlay, paths.keys), {
      issued_at_utc: '2026-01-05T09:00:00.000Z',
      rules: (_, epoch) => [{ rule_id: `deny-${epoch}`, reason: 'A stolen key.', actor_id }],
    });
  }

  async close(): Promise<void> {
    await this.http.close();
    await Promise.all(this.issuers.map((issuer) => issuer.close()));
  }
}

/** Writes and pins the file; `pinned` false leaves the pin as it is. */
export function writeIdentities(bench: Bench, text: string, pinned = true): void {
  const path = join(bench.contract, 'policy/identities.yaml');
  mkdirSync(join(bench.contract, 'policy'), { recursive: true });
  writeFileSync(path, text);
  if (!pinned) return;
  const files = ['lanes', 'roles', 'actions', 'identities'].map((name) => ({
    path: `policy/${name}.yaml`,
    bytes: readFileSync(join(bench.contract, `policy/${name}.yaml`)),
    pin: { problem: 'never_committed' as const },
  }));
  writeFileSync(join(bench.contract, 'pins.json'), JSON.stringify(pinManifest(files)));
}
