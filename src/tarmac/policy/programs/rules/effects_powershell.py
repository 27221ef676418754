"""What PowerShell's cmdlets do; read after effects.py, and written as there.

Names are small, aliases are resolved before.
"""

from tarmac.policy.programs.rules.shapes import Deed

DEEDS = [
    Deed(
        run="""
            get-childitem|get-content|get-location|set-location|get-item|get-itemproperty|get-process|get-service|
            get-command|get-help|get-member|get-date|get-host|get-history|get-alias|get-module|get-unique|
            get-variable|get-filehash|get-acl|get-psdrive|get-volume|get-disk|get-netadapter|get-netipaddress|
            get-nettcpconnection|get-computerinfo|get-culture|get-timezone|get-random|get-verb|get-package|
            get-hotfix|get-ciminstance|get-wmiobject|get-eventlog|get-winevent|select-string|select-object|
            select-xml|where-object|foreach-object|sort-object|measure-object|measure-command|group-object|
            compare-object|format-table|format-list|format-wide|format-hex|test-path|test-json|resolve-path|
            split-path|join-path|convert-path|convertto-json|convertfrom-json|convertto-csv|convertfrom-csv|
            import-csv|out-string|out-host|out-null|out-default|write-output|write-host|write-verbose|write-error|
            write-warning|push-location|pop-location|start-sleep|clear-host
        """,
        risk="low",
        kind="reads",
        does="reads",
    ),
    Deed(
        run="""
            if|else|elseif|for|while|do|switch|try|catch|finally|return|param|in|until|break|continue|begin|process|
            end|throw
        """,
        risk="low",
        kind="shell",
        does="works on the shell itself",
    ),
    Deed(
        run="get-childitem|get-item|get-content",
        operand="(?i)^env:",
        risk="medium",
        kind="reads",
        does="shows variables, which may hold secrets",
    ),
    Deed(
        run="get-credential|get-secret|export-clixml|convertfrom-securestring",
        risk="high",
        kind="reads",
        does="asks for credentials, or shows them",
    ),
    Deed(
        run="""
            set-content|add-content|out-file|tee-object|new-item|copy-item|move-item|rename-item|export-csv|
            clear-content|expand-archive|compress-archive|set-item|new-temporaryfile|set-date
        """,
        risk="medium",
        kind="writes",
        does="makes or changes files: {what}",
        vague=True,
    ),
    Deed(
        run="""
            invoke-webrequest|invoke-restmethod|test-connection|test-netconnection|resolve-dnsname|
            start-bitstransfer|send-mailmessage
        """,
        risk="medium",
        kind="connects",
        does="speaks with another machine",
    ),
    Deed(
        run="invoke-webrequest|invoke-restmethod",
        operand="(?i)^-(infile|body|form)$|^(put|post)$",
        risk="high",
        kind="connects",
        does="sends data to another machine",
    ),
    Deed(
        run="send-mailmessage|enter-pssession|new-pssession|invoke-command|copy-vmfile",
        risk="high",
        kind="connects",
        does="carries data or commands to another machine",
    ),
    Deed(
        run="""
            start-process|start-job|start-threadjob|invoke-item|import-module|add-type|new-object|invoke-history|
            invoke-pester|invoke-build
        """,
        risk="medium",
        kind="runs",
        does="starts a program, or loads one: {what}",
    ),
    Deed(
        run="start-process", operand="(?i)^runas$", risk="high", kind="runs", does="runs a command as the administrator"
    ),
    Deed(
        run="""
            install-module|install-package|install-script|update-module|uninstall-module|install-psresource|
            save-module|winget|choco|scoop
        """,
        risk="medium",
        kind="installs",
        does="installs or changes packages, whose scripts run",
    ),
    Deed(
        run="set-alias|set-variable|new-alias|set-psdebug|function|set-strictmode|remove-module|set-psreadlineoption",
        risk="medium",
        kind="shell",
        does="changes the shell itself",
    ),
    Deed(run="stop-process|stop-job|wait-process", risk="medium", kind="machine", does="ends or steers processes"),
    Deed(
        run="""
            stop-service|start-service|restart-service|set-service|new-service|remove-service|
            register-scheduledtask|new-scheduledtask|set-scheduledtask|unregister-scheduledtask|schtasks|sc.exe|
            register-wmievent|register-objectevent
        """,
        risk="high",
        kind="configures",
        does="changes what runs on the machine by itself",
    ),
    Deed(
        run="""
            set-executionpolicy|set-acl|icacls|takeown|new-localuser|remove-localuser|set-localuser|
            add-localgroupmember|net|set-mppreference|add-mppreference|disable-netfirewallprofile|
            set-netfirewallprofile|new-netfirewallrule|set-itemproperty|new-itemproperty|remove-itemproperty|reg|
            regedit|bcdedit|wmic|vssadmin|enable-psremoting|set-wsmaninstance|rename-computer|add-computer
        """,
        risk="high",
        kind="configures",
        does="changes rights or settings of the machine",
    ),
    Deed(
        run="stop-computer|restart-computer|suspend-computer",
        risk="high",
        kind="machine",
        does="brings the machine to a halt",
    ),
    Deed(
        run="""
            format-volume|clear-disk|initialize-disk|remove-partition|set-disk|set-partition|repair-volume|format|
            diskpart|new-partition|resize-partition|remove-volume|reset-physicaldisk
        """,
        risk="critical",
        kind="machine",
        does="can destroy a disk and all on it",
    ),
    Deed(
        run="powershell|pwsh|powershell.exe|pwsh.exe",
        operand="(?i)^[-/]e(n(c(o.*)?)?|c)?$",
        risk="critical",
        kind="runs",
        does="runs code that is disguised",
    ),
]
