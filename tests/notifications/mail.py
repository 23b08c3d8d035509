"""A real mail server (aiosmtpd) for the tests of notifications: STARTTLS and a login are required, as a provider would.

    python mail.py CERTIFICATE KEY USER PASSWORD

Prints its port, then one line of JSON for each mail. Ends with its standard input.
"""

import asyncio
import json
import ssl
import sys
from email import message_from_bytes, policy

from aiosmtpd.smtp import SMTP, AuthResult


class Printer:
    async def handle_DATA(self, server, session, envelope):
        mail = message_from_bytes(envelope.content, policy=policy.default)
        said = {
            "from": envelope.mail_from,
            "to": envelope.rcpt_tos,
            "subject": mail["subject"],
            "type": mail.get_content_type(),
            "body": mail.get_content(),
            "encrypted": session.ssl is not None,
            "authenticated": session.authenticated,
        }
        print(json.dumps(said), flush=True)
        return "250 taken"


async def main(certificate, key, user, password):
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)

    def authenticator(server, session, envelope, mechanism, data):
        known = data.login == user.encode() and data.password == password.encode()
        return AuthResult(success=known)

    def connection():
        return SMTP(
            Printer(),
            tls_context=context,
            require_starttls=True,
            authenticator=authenticator,
            auth_required=True,
        )

    loop = asyncio.get_running_loop()
    server = await loop.create_server(connection, host="127.0.0.1", port=0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
