// Omits, doubles and replaces every byte of a signed overlay.

import './overlay-file.test.js';
