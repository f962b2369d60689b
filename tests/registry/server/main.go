// An in-memory schema registry with Confluent's REST interface, for the tests.
//
// It prints its address once it listens, and ends when its standard input does:
// a test that is killed leaves no server behind.
package main

import (
	"crypto/subtle"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/conduitio/conduit-commons/database/inmemory"
	schemaregistry "github.com/conduitio/conduit-schema-registry"
)

func main() {
	address := flag.String("listen", "127.0.0.1:0", "where to listen")
	keystore := flag.String("keystore", "", "PEM file of a key and its certificate; with it the server speaks TLS")
	flag.Parse()

	registry, err := schemaregistry.NewSchemaRegistry(&inmemory.DB{})
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	schemaregistry.NewServer(nil, registry).RegisterHandlers(mux)
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(listener.Addr())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	server := http.Server{
		Handler:           logged(guarded(os.Getenv("REGISTRY_USERNAME"), os.Getenv("REGISTRY_PASSWORD"), mux)),
		ReadHeaderTimeout: 10 * time.Second,
	}
	if *keystore != "" {
		log.Fatal(server.ServeTLS(listener, *keystore, *keystore))
	}
	log.Fatal(server.Serve(listener))
}

// guarded asks for a login when there is one to ask for.
func guarded(username, password string, next http.Handler) http.Handler {
	if username == "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, secret, _ := r.BasicAuth()
		if user != username || subtle.ConstantTimeCompare([]byte(secret), []byte(password)) == 0 {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// logged writes a line per request, so that a test can count them.
func logged(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println(r.Method, r.URL.Path)
		next.ServeHTTP(w, r)
	})
}
