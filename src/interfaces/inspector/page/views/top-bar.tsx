// The title, the state of the connection, the proof, the pinned policy, and the theme of the page.

import type { FeedConnection } from '../data/feed.js';
import { togglePanel, useStore } from './common/context.js';
import { Icon, IconButton, Logo } from './common/icons.js';
import { ProofBadge } from './proof-badge.js';
import { SessionMenu } from './page-header.js';
import { shortenHash, VisibleText } from './common/text.js';

const CONNECTION_TEXTS: Readonly<Record<FeedConnection, readonly [hue: string, words: string]>> = {
  connecting: ['invalid', 'Connecting'],
  none: ['failed', 'Not connected'],
  live: ['completed', 'Live'],
  lost: ['failed', 'Connection lost, retrying'],
  paused: ['idle', 'Paused while hidden'],
  refused: ['failed', 'Token refused'],
  other: ['failed', 'Another ledger'],
  closed: ['idle', 'File, read-only'],
};

export function TopBar() {
  return (
    <header class="top">
      <IconButton icon="tree" label="Runs" class="drawer-button" onClick={() => togglePanel('tree')} />
      <Logo />
      <h1>State inspector</h1>
      <ConnectionState />
      <ProofBadge />
      <span class="grow" />
      <Pins />
      <ApprovalsLink />
      <SessionMenu />
      <ThemeButton />
      <IconButton icon="keys" label="Keys" title="Keys (?)" onClick={() => togglePanel('keys')} />
      <IconButton icon="list" label="Events" class="drawer-button" onClick={() => togglePanel('events')} />
    </header>
  );
}

/** Without a service that accepts votes, there is no link to the approvals. */
function ApprovalsLink() {
  if (useStore().info.value?.approvals !== true) return null;
  return (
    <a class="plain nav" href="approvals" aria-label="Approvals" title="Approvals">
      <Icon name="people" /> <span class="nav-text">Approvals</span>
    </a>
  );
}

function ConnectionState() {
  const store = useStore();
  const [hue, words] = CONNECTION_TEXTS[store.connection.value];
  const past = !store.isLive.value && store.connection.value === 'live';
  return (
    <span class={`connection h-${hue}`} role="status">
      <i class="dot" />
      {past ? 'Live, viewing the past' : words}
    </span>
  );
}

/** The contract and policy versions of the selected run, otherwise of the newest one. */
function Pins() {
  const store = useStore();
  const run = store.run.value;
  const pins = run === null ? undefined : store.rows.creations.get(run.key)?.pins;
  const title = store.info.value?.title ?? '';
  return (
    <span class="pins">
      <span class="title" title={title}>
        <VisibleText text={title} />
      </span>
      {pins !== undefined && (
        <>
          <Pin name="contract" of={pins.contract} />
          <Pin name="lanes" of={pins.lanes} />
          <Pin name="roles" of={pins.roles} />
        </>
      )}
    </span>
  );
}

const Pin = ({ name, of }: { readonly name: string; readonly of: string }) => (
  <span title={`${name} ${of}`}>
    {name} <code>{shortenHash(of)}</code>
  </span>
);

const NEXT_THEME = { auto: 'light', light: 'dark', dark: 'auto' } as const;

function ThemeButton() {
  const store = useStore();
  const { theme } = store.view.value;
  const label = `Theme: ${theme}`;
  return (
    <IconButton icon={theme} label={label} title={label} onClick={() => store.change({ theme: NEXT_THEME[theme] })} />
  );
}
