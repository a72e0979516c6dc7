// The page as a service gives it.

import proofWorker from './worker/proof.ts?worker&url';
import { HttpFeed } from './data/http-feed.js';
import { openApprovals, openPage, ownToken, type MakeProver } from './boot.js';
import { proverIn } from './worker/remote.js';

/** Under Trusted Types one policy lets exactly this address through. */
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

const token = ownToken();

const inWorker: MakeProver = (tell) => proverIn(openWorker(), { base: location.origin, token }, tell);

if (/\/approvals\/?$/.test(location.pathname)) openApprovals(token);
else openPage(new HttpFeed('', token, globalThis), inWorker);
