package dev.baton;

import io.grpc.ManagedChannel;
import io.grpc.Server;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import io.grpc.netty.shaded.io.grpc.netty.NettyServerBuilder;
import io.grpc.netty.shaded.io.netty.channel.ChannelOption;
import io.grpc.netty.shaded.io.netty.channel.EventLoopGroup;
import io.grpc.netty.shaded.io.netty.channel.MultiThreadIoEventLoopGroup;
import io.grpc.netty.shaded.io.netty.channel.epoll.Epoll;
import io.grpc.netty.shaded.io.netty.channel.epoll.EpollDomainSocketChannel;
import io.grpc.netty.shaded.io.netty.channel.epoll.EpollIoHandler;
import io.grpc.netty.shaded.io.netty.channel.epoll.EpollServerDomainSocketChannel;
import io.grpc.netty.shaded.io.netty.channel.unix.DomainSocketAddress;
import io.grpc.netty.shaded.io.netty.util.concurrent.DefaultThreadFactory;
import java.io.IOException;
import java.net.BindException;
import java.net.ConnectException;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.concurrent.TimeUnit;

/** Addresses: {@code host:port} or {@code unix:///path} (Linux), to listen on and to call. */
final class Transport {
  private static final String UNIX = "unix:";

  private Transport() {}

  /** Made when the first socket file is used; its one thread serves the process. */
  private static final class SocketLoop {
    static final EventLoopGroup GROUP =
        new MultiThreadIoEventLoopGroup(
            1, new DefaultThreadFactory("baton-socket", true), EpollIoHandler.newFactory());
  }

  /** A channel to an address; nothing is sent yet. */
  static ManagedChannel channel(String address) {
    NettyChannelBuilder builder =
        isSocketFile(address)
            ? socketChannel(path(address))
            : NettyChannelBuilder.forTarget("dns:///" + address);
    return builder
        .usePlaintext()
        .proxyDetector(server -> null) // the sidecar is on this machine
        .build();
  }

  /** How to listen on an address. */
  static NettyServerBuilder listener(String address) throws IOException {
    NettyServerBuilder builder =
        isSocketFile(address)
            ? socketListener(path(address))
            : NettyServerBuilder.forAddress(socketAddress(address));
    return builder
        .permitKeepAliveTime(0, TimeUnit.NANOSECONDS) // the sidecar pings often
        .permitKeepAliveWithoutCalls(true);
  }

  /** The address served, with the port chosen for 0; lets the group in to a socket file. */
  static String served(String address, Server server) throws IOException {
    if (!isSocketFile(address)) {
      return address.substring(0, address.lastIndexOf(':') + 1) + server.getPort();
    }
    // In a pod the sidecar runs as another user of the volume's group.
    Files.setPosixFilePermissions(path(address), PosixFilePermissions.fromString("rw-rw----"));
    return address;
  }

  private static NettyChannelBuilder socketChannel(Path path) {
    requireEpoll();
    return NettyChannelBuilder.forAddress(new DomainSocketAddress(path.toFile()))
        .channelType(EpollDomainSocketChannel.class, DomainSocketAddress.class)
        .eventLoopGroup(SocketLoop.GROUP)
        .withOption(ChannelOption.SO_KEEPALIVE, null) // socket files have none: no warning of it
        .overrideAuthority("localhost");
  }

  private static NettyServerBuilder socketListener(Path path) throws IOException {
    requireEpoll();
    if (isSocket(path)) {
      if (answers(path)) {
        throw new BindException(path + " is in use");
      }
      Files.delete(path); // left behind by a process that was killed
    }
    DomainSocketAddress address = new DomainSocketAddress(path.toFile());
    return NettyServerBuilder.forAddress(address)
        .channelType(EpollServerDomainSocketChannel.class)
        .withChildOption(ChannelOption.SO_KEEPALIVE, null)
        .bossEventLoopGroup(SocketLoop.GROUP)
        .workerEventLoopGroup(SocketLoop.GROUP);
  }

  private static void requireEpoll() {
    if (!Epoll.isAvailable()) {
      throw new UnsupportedOperationException(
          "socket files need Linux on x86_64 or aarch64", Epoll.unavailabilityCause());
    }
  }

  private static boolean isSocket(Path path) throws IOException {
    return Files.exists(path, LinkOption.NOFOLLOW_LINKS)
        && Files.readAttributes(path, BasicFileAttributes.class, LinkOption.NOFOLLOW_LINKS)
            .isOther();
  }

  private static boolean answers(Path path) throws IOException {
    try (SocketChannel living = SocketChannel.open(UnixDomainSocketAddress.of(path))) {
      return living.isConnected();
    } catch (ConnectException nobody) {
      return false;
    }
  }

  private static InetSocketAddress socketAddress(String address) {
    URI uri = URI.create("tcp://" + address);
    if (uri.getHost() == null || uri.getPort() < 0) {
      throw new IllegalArgumentException("not host:port or unix:///path: " + address);
    }
    return new InetSocketAddress(uri.getHost(), uri.getPort());
  }

  private static boolean isSocketFile(String address) {
    return address.startsWith(UNIX);
  }

  private static Path path(String address) {
    String path = address.substring(UNIX.length());
    return Path.of(path.startsWith("//") ? path.substring(2) : path);
  }
}
