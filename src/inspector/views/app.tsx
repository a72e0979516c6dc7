// The page: its panels, its keys, and what is said when something is not as it should be.

import { useEffect } from 'preact/hooks';
import { Center } from './center.js';
import { overlay, useStore } from './context.js';
import { Details } from './details.js';
import { EventList } from './event-list.js';
import { KeysHelp } from './keys-help.js';
import { onKey } from './keys.js';
import { RunTree } from './run-tree.js';
import { Scrubber } from './scrubber.js';
import { HowToGetIn, REFUSED } from './refused.js';
import { TopBar } from './top-bar.js';
import { heed } from '../store/heed.js';

export function App() {
  const store = useStore();
  useEffect(() => {
    const listen = (event: KeyboardEvent): void => onKey(store, event);
    document.addEventListener('keydown', listen);
    return () => document.removeEventListener('keydown', listen);
  }, [store]);
  return (
    <div class={store.isLive.value ? 'app' : 'app past'} data-drawer={overlay.value}>
      <TopBar />
      <Banner />
      <Body />
      <KeysHelp />
    </div>
  );
}

function Body() {
  const store = useStore();
  if (store.failed.value !== null) return <Failed why={store.failed.value} />;
  if (store.info.value === null) return <main class="whole">Reading the ledger…</main>;
  heed(store.rev);
  if (store.runs.size === 0) return <Empty />;
  return (
    <>
      <RunTree />
      <Center />
      <section class="side" aria-label="Events">
        <EventList />
        <Details />
      </section>
      <Scrubber />
    </>
  );
}

function Banner() {
  const { connection, info } = useStore();
  if (connection.value === 'other') {
    return (
      <div class="banner" role="alert">
        Behind this address there is another ledger now. Nothing of it is shown here.
        <button type="button" onClick={() => location.reload()}>
          Load the page again
        </button>
      </div>
    );
  }
  if (connection.value !== 'refused' || info.value === null) return null;
  return (
    <div class="banner" role="alert">
      <span>
        The service does not take this page’s token any more: nothing that is new is shown. <HowToGetIn />
      </span>
    </div>
  );
}

function Failed({ why }: { readonly why: string }) {
  const store = useStore();
  const refusal = store.refusal.value;
  return (
    <main class="whole">
      <div role="alert">
        <h2>{refusal === null ? 'The ledger could not be read' : REFUSED[refusal]}</h2>
        <p>{refusal === null ? why : <HowToGetIn />}</p>
      </div>
      <button type="button" onClick={() => void store.open()}>
        Try again
      </button>
    </main>
  );
}

function Empty() {
  return (
    <main class="whole">
      <h2>No run yet</h2>
      <p>
        As soon as an agent proposes something it is shown here. This makes a run:{' '}
        <code>turnpike run proposals.jsonl</code>
      </p>
    </main>
  );
}
