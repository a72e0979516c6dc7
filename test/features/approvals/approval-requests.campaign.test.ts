// A thousand random histories of approvals.

import './approval-requests.test.js';
