// The page: its panels, its keys, and its error messages.

import { useEffect } from 'preact/hooks';
import { Center } from './center.js';
import { openPanel, useStore } from './common/context.js';
import { EntryDetails } from './events/entry-details.js';
import { EventList } from './events/event-list.js';
import { handleKey, KeysHelp } from './common/keys.js';
import { RunTreePanel } from './run-tree-panel.js';
import { Scrubber } from './events/scrubber.js';
import { AccessHelp, ReadFailure } from './page-header.js';
import { TopBar } from './top-bar.js';

export function App() {
  const store = useStore();
  useEffect(() => {
    const listen = (event: KeyboardEvent): void => handleKey(store, event);
    document.addEventListener('keydown', listen);
    return () => document.removeEventListener('keydown', listen);
  }, [store]);
  return (
    <div class={store.isLive.value ? 'app' : 'app past'} data-drawer={openPanel.value}>
      <TopBar />
      <Banner />
      <Body />
      <KeysHelp />
    </div>
  );
}

function Body() {
  const store = useStore();
  if (store.failure.value !== null) return <FailureNotice why={store.failure.value} />;
  if (store.info.value === null) return <main class="whole">Reading the ledger…</main>;
  if (store.runs.size === 0) return <EmptyNotice />;
  return (
    <>
      <main class="panels">
        <RunTreePanel />
        <Center />
        <section class="side" aria-label="Events">
          <EventList />
          <EntryDetails />
        </section>
      </main>
      <Scrubber />
    </>
  );
}

function Banner() {
  const { connection, info } = useStore();
  if (connection.value === 'other') {
    return (
      <div class="banner" role="alert">
        This address now serves another ledger. This page shows nothing of it.
        <button type="button" onClick={() => location.reload()}>
          Load the page again
        </button>
      </div>
    );
  }
  const flaw = info.value?.flaw;
  if (flaw !== undefined) {
    return (
      <div class="banner" role="alert">
        <span>Nothing on this page is verified: {flaw}.</span>
      </div>
    );
  }
  if (connection.value !== 'refused' || info.value === null) return null;
  return (
    <div class="banner" role="alert">
      <span>
        The service no longer accepts this page’s token: new entries are not shown. <AccessHelp />
      </span>
    </div>
  );
}

function FailureNotice({ why }: { readonly why: string }) {
  const store = useStore();
  return (
    <main class="whole">
      <ReadFailure title="The ledger could not be read" why={why} refusal={store.refusal.value} />
      <button type="button" onClick={() => void store.open()}>
        Try again
      </button>
    </main>
  );
}

function EmptyNotice() {
  return (
    <main class="whole">
      <h2>No run yet</h2>
      <p>
        Proposals of agents appear here. This command makes a run: <code>turnpike run proposals.jsonl</code>
      </p>
    </main>
  );
}
