// All sizes of the suite in this folder.

import './planted-stores.test.js';
