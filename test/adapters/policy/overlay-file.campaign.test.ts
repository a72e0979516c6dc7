// Every byte of a signed overlay is left out, doubled or replaced.

import './overlay-file.test.js';
