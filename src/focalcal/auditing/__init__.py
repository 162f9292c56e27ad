"""Can these probabilities be trusted? From predictions to a verdict. Names are imported when first used."""

from typing import TYPE_CHECKING

from focalcal.core.lazy import lazy_names

if TYPE_CHECKING:
    from focalcal.auditing.auditor import Audit as Audit
    from focalcal.auditing.auditor import audit as audit
    from focalcal.auditing.gates import Gate as Gate
    from focalcal.auditing.logs import LogAudit as LogAudit
    from focalcal.auditing.logs import audit_logs as audit_logs
    from focalcal.auditing.monitor_files import monitor as monitor
    from focalcal.auditing.monitor_state import MonitorError as MonitorError
    from focalcal.auditing.monitor_verdict import MonitorVerdict as MonitorVerdict
    from focalcal.auditing.monitoring import Monitor as Monitor
    from focalcal.auditing.verdict import Verdict as Verdict

_HOME = {
    "Audit": "auditor",
    "Gate": "gates",
    "LogAudit": "logs",
    "Monitor": "monitoring",
    "MonitorError": "monitor_state",
    "MonitorVerdict": "monitor_verdict",
    "monitor": "monitor_files",
    "Verdict": "verdict",
    "audit": "auditor",
    "audit_logs": "logs",
}

__all__ = [*_HOME]

__getattr__, __dir__ = lazy_names(__name__, _HOME)
