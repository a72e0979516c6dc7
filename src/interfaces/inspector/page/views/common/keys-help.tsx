import { useEffect, useRef } from 'preact/hooks';
import { openPanel } from './context.js';
import { Icon } from './icons.js';
import { KEYS } from './keys.js';

export function KeysHelp() {
  const open = openPanel.value === 'keys';
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (open) dialog.current?.showModal();
    else dialog.current?.close();
  }, [open]);
  return (
    <dialog
      class="keys"
      ref={dialog}
      aria-label="Keys"
      onClose={() => openPanel.value === 'keys' && (openPanel.value = 'none')}
    >
      <header>
        <h2>Keys</h2>
        <button type="button" class="plain" aria-label="Close" onClick={() => (openPanel.value = 'none')}>
          <Icon name="close" />
        </button>
      </header>
      <dl>
        {KEYS.map(([keys, does]) => (
          <>
            <dt>
              {keys.split(' ').map((key) => (
                <kbd>{key}</kbd>
              ))}
            </dt>
            <dd>{does}</dd>
          </>
        ))}
      </dl>
    </dialog>
  );
}
