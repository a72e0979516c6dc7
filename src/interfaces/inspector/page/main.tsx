// The inspector, as a service serves it.

import proofWorker from './worker/proof-worker.ts?worker&url';
import { HttpFeed } from './data/http-feed.js';
import { openPage, type ProverFactory } from './boot.js';
import { takeOwnToken } from './own-token.js';
import { createWorkerProver } from './worker/worker-prover.js';
import { loadSession } from './views/page-header.js';

/** Under Trusted Types, one policy permits exactly this address. */
const WORKER = new URL(proofWorker, import.meta.url).href;

interface TrustedFactory {
  createPolicy(
    name: string,
    rules: { createScriptURL: (url: string) => string },
  ): { createScriptURL(url: string): string };
}

function openWorker(): Worker {
  const { trustedTypes } = globalThis as { trustedTypes?: TrustedFactory };
  const only = (url: string): string => {
    if (url !== WORKER) throw new TypeError('not the worker of this page');
    return url;
  };
  const policy = trustedTypes?.createPolicy('inspector', { createScriptURL: only });
  return new Worker(policy?.createScriptURL(WORKER) ?? WORKER, { type: 'module' });
}

const token = takeOwnToken();

const createProver: ProverFactory = (onState) =>
  createWorkerProver(openWorker(), { base: location.origin, token }, onState);

openPage(new HttpFeed('', token, globalThis, loadSession), createProver);
