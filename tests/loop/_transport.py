"""By what the clients of a test reach the server: TCP, or TLS on it with PENSTOCK_TLS=1. The same tests run both ways."""

import contextlib
import http.client
import os
import socket
import ssl

import _certificates as certificates

SECURED = os.environ.get("PENSTOCK_TLS") == "1"
SCHEME = "https" if SECURED else "http"
CURL = ("--insecure",) * SECURED
# How a client hears that an answer was cut off.
CUT = (ConnectionResetError, ssl.SSLEOFError)
# For node: whatever the certificate is, and without a word on that.
NODE = {"NODE_TLS_REJECT_UNAUTHORIZED": "0", "NODE_NO_WARNINGS": "1"} if SECURED else {}


def server_options():
    return ["--tls", *certificates.ecdsa()] if SECURED else []


def context():
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
    return made


def connect(port, limit_s, receive_buffer=None):
    """An end without a close_notify is an error for the client, as a reset is."""
    client = socket.socket()
    try:
        client.settimeout(limit_s)
        if receive_buffer:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        client.connect(("127.0.0.1", port))
        return context().wrap_socket(client, server_hostname="localhost", suppress_ragged_eofs=False) if SECURED else client
    except BaseException:
        client.close()
        raise


def http_client(port, limit_s, is_secured):
    if is_secured:
        return contextlib.closing(http.client.HTTPSConnection("127.0.0.1", port, timeout=limit_s, context=context()))
    return contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=limit_s))
